"""Generated worlds with the rarer rules too: what `worlds` draws, and on top of it combined and unusual constraints.

Beside plain worlds these have spread over capacity types, minDomains, inclusion policies, matchLabelKeys and soft rules;
affinity across namespaces; required terms with every operator; extended resources; pools with minValues, startup taints,
labels and custom labels; offerings that are sold out or reserved; overlays of price and capacity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from reconciler.model.demand import ChunkGroup
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodePool,
)
from reconciler.model.overlays import NodeOverlay
from reconciler.model.pods import NodeSelectorTerm, PodAffinityTerm, PodShape, TopologySpread, WeightedPodAffinityTerm
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Taint
from reconciler.model.workloads import DaemonSet
from tests.builders import shape
from tests.unit.placement.worlds import APPS, ZONES, World, worlds

GPU = "example.com/gpu"
GENERATION = "example.com/generation"
NAMESPACES = {"shop": {"team": "red"}, "bank": {"team": "blue"}}
STARTUP = Taint("example.com/warming", "", "NoSchedule")


@dataclass(frozen=True, repr=False)
class WideWorld(World):
    overlays: tuple[NodeOverlay, ...] = ()

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self.overlays}"


def _selectors() -> st.SearchStrategy[LabelSelector]:
    return st.one_of(
        st.sampled_from(APPS).map(lambda app: LabelSelector((("app", app),))),
        st.sampled_from(APPS).map(
            lambda app: LabelSelector(expressions=(Requirement("app", Operator.NOT_IN, (app,)),))
        ),
        st.just(LabelSelector(expressions=(Requirement("app", Operator.EXISTS),))),
    )


@st.composite
def _spreads(draw: st.DrawFn) -> TopologySpread:
    return TopologySpread(
        draw(st.sampled_from([ZONE_LABEL, HOSTNAME_LABEL, CAPACITY_TYPE_LABEL])),
        draw(st.integers(1, 3)),
        draw(st.sampled_from(["DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
        draw(_selectors()),
        min_domains=draw(st.sampled_from([None, None, 2, 3])),
        node_affinity_policy=draw(st.sampled_from(["Honor", "Honor", "Ignore"])),
        node_taints_policy=draw(st.sampled_from(["Ignore", "Ignore", "Honor"])),
        match_label_keys=draw(st.sampled_from([(), (), ("version",)])),
    )


@st.composite
def _terms(draw: st.DrawFn) -> PodAffinityTerm:
    red = LabelSelector((("team", "red"),))
    return PodAffinityTerm(
        draw(st.sampled_from([ZONE_LABEL, HOSTNAME_LABEL, CAPACITY_TYPE_LABEL])),
        draw(_selectors()),
        namespaces=draw(st.sampled_from([(), (), ("bank",), ("bank", "shop")])),
        namespace_selector=draw(st.sampled_from([None, None, None, LabelSelector(), red])),
        match_label_keys=draw(st.sampled_from([(), (), ("version",)])),
    )


def _requirements() -> st.SearchStrategy[Requirement]:
    return st.sampled_from(
        [
            Requirement(ZONE_LABEL, Operator.NOT_IN, (ZONES[0],)),
            Requirement(ZONE_LABEL, Operator.IN, ZONES[1:]),
            Requirement(CAPACITY_TYPE_LABEL, Operator.IN, ("spot",)),
            Requirement(INSTANCE_TYPE_LABEL, Operator.NOT_IN, ("small",)),
            Requirement("team", Operator.EXISTS),
            Requirement("team", Operator.DOES_NOT_EXIST),
            Requirement("team", Operator.NOT_IN, ("red",)),
            Requirement(GENERATION, Operator.GT, ("3",)),
            Requirement(GENERATION, Operator.LT, ("6",)),
            Requirement(GENERATION, Operator.EXISTS),
        ]
    )


@st.composite
def _changed(draw: st.DrawFn, plain: PodShape) -> PodShape:
    """The shape with up to two more rules."""
    found = replace(
        plain,
        namespace=draw(st.sampled_from(["shop", "shop", "bank"])),
        labels=tuple(sorted({**dict(plain.labels), "version": draw(st.sampled_from(["1", "2"]))}.items())),
    )
    for _ in range(draw(st.integers(0, 2))):
        match draw(st.sampled_from(["spread", "apart", "together", "terms", "gpu", "wish"])):
            case "spread":
                keys = {item.topology_key for item in found.topology_spread}
                more = draw(_spreads())
                if more.topology_key not in keys:  # one constraint a key: the API server says so
                    found = replace(found, topology_spread=(*found.topology_spread, more))
            case "apart":
                found = replace(found, pod_anti_affinity=(*found.pod_anti_affinity, draw(_terms())))
            case "together":
                found = replace(found, pod_affinity=(*found.pod_affinity, draw(_terms())))
            case "terms":
                term = st.lists(_requirements(), min_size=1, max_size=2).map(
                    lambda items: NodeSelectorTerm(tuple(items))
                )
                found = replace(found, required_node_terms=tuple(draw(st.lists(term, min_size=1, max_size=2))))
            case "gpu":
                found = replace(found, requests=found.requests + Resources.parse({GPU: "1"}))
            case _:
                wish = WeightedPodAffinityTerm(10, draw(_terms()))
                found = replace(found, preferred_pod_anti_affinity=(wish,))
    return found


@st.composite
def _pool(draw: st.DrawFn, pool: NodePool) -> NodePool:
    template = pool.template
    asked = [
        *template.requirements,
        *draw(
            st.lists(
                st.sampled_from(
                    [
                        Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, (), 2),
                        Requirement(GENERATION, Operator.IN, ("2", "4", "8")),
                        Requirement(GENERATION, Operator.GT, ("1",)),
                        Requirement(CAPACITY_TYPE_LABEL, Operator.IN, ("on-demand",)),
                        Requirement(INSTANCE_TYPE_LABEL, Operator.NOT_IN, ("medium",)),
                    ]
                ),
                max_size=2,
                unique_by=lambda item: item.key,
            )
        ),
    ]
    return replace(
        pool,
        template=replace(
            template,
            requirements=tuple(asked),
            startup_taints=draw(st.sampled_from([(), (STARTUP,)])),
            labels=draw(st.sampled_from([(), (("example.com/owner", "shop"),)])),
        ),
    )


@st.composite
def _kind(draw: st.DrawFn, kind: InstanceType) -> InstanceType:
    gone = draw(st.integers(0, 4))
    offerings = [
        replace(item, available=item.available and number != gone) for number, item in enumerate(kind.offerings)
    ]
    if kind.name == "large" and draw(st.booleans()):
        more = Resources.parse({GPU: "2"})
        return replace(kind, capacity=kind.capacity + more, offerings=tuple(offerings))
    return replace(kind, offerings=tuple(offerings))


@st.composite
def _overlays(draw: st.DrawFn) -> tuple[NodeOverlay, ...]:
    ref = ObjectRef("karpenter.sh", "NodeOverlay", "", "first")
    medium = (Requirement(INSTANCE_TYPE_LABEL, Operator.IN, ("medium",)),)
    return draw(
        st.sampled_from(
            [
                (),
                (),
                (NodeOverlay(ref, medium, 10, price_adjustment="-60%"),),
                (NodeOverlay(ref, medium, 10, price="0.05"),),
                (NodeOverlay(ref, medium, 10, capacity=Resources.parse({GPU: "1"})),),
            ]
        )
    )


@st.composite
def wide_worlds(draw: st.DrawFn) -> WideWorld:
    world = draw(worlds())
    demands = tuple(
        replace(item, groups=tuple(ChunkGroup(draw(_changed(group.shape)), group.count) for group in item.groups))
        for item in world.demands
    )
    pods = tuple(replace(item, shape=draw(_changed(item.shape))) for item in world.view.pods)
    pods = tuple(replace(item, namespace=item.shape.namespace) for item in pods)
    driver = DaemonSet("system", "driver", shape("200m", "128Mi", namespace="system", node_selector={"team": "red"}))
    view = replace(
        world.view,
        pods=tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name))),
        daemon_sets=(*world.view.daemon_sets, *draw(st.sampled_from([(), (driver,)]))),
        namespaces=NAMESPACES,
    )
    return WideWorld(
        view,
        tuple(draw(_pool(pool)) for pool in world.node_pools),
        tuple(draw(_kind(kind)) for kind in world.instance_types),
        demands,
        draw(_overlays()),
    )
