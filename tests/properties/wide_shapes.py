"""Pod shapes of generated worlds under the rarer rules, combined. Used by wide_worlds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from reconciler.model.pods import (
    HostPort,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodShape,
    PreferredNodeTerm,
    RuntimeClass,
    TopologySpread,
    WeightedPodAffinityTerm,
    admitted,
)
from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Toleration
from tests.builders import one_of, selects
from tests.properties.sampling import sampled_from
from tests.unit.placement.worlds import APPS, ZONES

GPU = "example.com/gpu"
GENERATION = "example.com/generation"
PORTS = (HostPort(80), HostPort(80, "UDP"), HostPort(80, "TCP", "10.0.0.1"), HostPort(443, "TCP", "10.0.0.2"))
RUNTIME_CLASSES = (
    RuntimeClass("sandbox", Resources.parse({"cpu": "300m", "memory": "200Mi"})),
    RuntimeClass("special", Resources(), (("team", "red"),), (Toleration("dedicated", "Exists"),)),
)


def _selectors() -> st.SearchStrategy[LabelSelector]:
    return st.one_of(
        sampled_from(APPS).map(selects),
        sampled_from(APPS).map(lambda app: LabelSelector(expressions=(Requirement("app", Operator.NOT_IN, (app,)),))),
        st.just(LabelSelector(expressions=(Requirement("app", Operator.EXISTS),))),
    )


@st.composite
def _spreads(draw: st.DrawFn) -> TopologySpread:
    return TopologySpread(
        draw(sampled_from([ZONE_LABEL, HOSTNAME_LABEL, CAPACITY_TYPE_LABEL])),
        draw(st.integers(1, 3)),
        draw(sampled_from(["DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
        draw(_selectors()),
        min_domains=draw(sampled_from([None, None, 2, 3])),
        node_affinity_policy=draw(sampled_from(["Honor", "Honor", "Ignore"])),
        node_taints_policy=draw(sampled_from(["Ignore", "Ignore", "Honor"])),
        match_label_keys=draw(sampled_from([(), (), ("version",)])),
    )


@st.composite
def _terms(draw: st.DrawFn) -> PodAffinityTerm:
    red = LabelSelector((("team", "red"),))
    return PodAffinityTerm(
        draw(sampled_from([ZONE_LABEL, HOSTNAME_LABEL, CAPACITY_TYPE_LABEL])),
        draw(_selectors()),
        namespaces=draw(sampled_from([(), (), ("bank",), ("bank", "shop")])),
        namespace_selector=draw(sampled_from([None, None, None, LabelSelector(), red])),
        match_label_keys=draw(sampled_from([(), (), ("version",)])),
    )


def _requirements() -> st.SearchStrategy[Requirement]:
    return sampled_from(
        [
            Requirement(ZONE_LABEL, Operator.NOT_IN, (ZONES[0],)),
            one_of(ZONE_LABEL, *ZONES[1:]),
            one_of(CAPACITY_TYPE_LABEL, "spot"),
            Requirement(INSTANCE_TYPE_LABEL, Operator.NOT_IN, ("small",)),
            Requirement("team", Operator.EXISTS),
            Requirement("team", Operator.DOES_NOT_EXIST),
            Requirement("team", Operator.NOT_IN, ("red",)),
            Requirement(GENERATION, Operator.GT, ("3",)),
            Requirement(GENERATION, Operator.LT, ("6",)),
            Requirement(GENERATION, Operator.EXISTS),
        ]
    )


def _preferences() -> st.SearchStrategy[PreferredNodeTerm]:
    term = _requirements().map(lambda item: NodeSelectorTerm((item,)))
    return st.builds(PreferredNodeTerm, sampled_from([1, 50, 100]), term)


@st.composite
def _topology(draw: st.DrawFn, found: PodShape) -> PodShape:
    """With a rule on the pods around it, or a wish."""
    match draw(sampled_from(["spread", "apart", "together", "wish", "company"])):
        case "spread":
            keys = {item.topology_key for item in found.topology_spread}
            more = draw(_spreads())
            if more.topology_key in keys:  # one constraint a key: the API server says so
                return found
            return replace(found, topology_spread=(*found.topology_spread, more))
        case "apart":
            return replace(found, pod_anti_affinity=(*found.pod_anti_affinity, draw(_terms())))
        case "together":
            return replace(found, pod_affinity=(*found.pod_affinity, draw(_terms())))
        case "wish":
            return replace(found, preferred_pod_anti_affinity=(WeightedPodAffinityTerm(10, draw(_terms())),))
        case _:
            liked = WeightedPodAffinityTerm(draw(sampled_from([5, 50])), draw(_terms()))
            return replace(found, preferred_pod_affinity=(*found.preferred_pod_affinity, liked))


@st.composite
def _node_rules(draw: st.DrawFn, found: PodShape) -> PodShape:
    """With a rule on the node itself, or a wish."""
    match draw(sampled_from(["terms", "gpu", "prefer", "ports"])):
        case "terms":
            term = st.lists(_requirements(), min_size=1, max_size=2).map(lambda items: NodeSelectorTerm(tuple(items)))
            return replace(found, required_node_terms=tuple(draw(st.lists(term, min_size=1, max_size=2))))
        case "gpu":
            return replace(found, requests=found.requests + Resources.parse({GPU: "1"}))
        case "prefer":
            return replace(found, preferred_node_terms=(*found.preferred_node_terms, draw(_preferences())))
        case _:
            return replace(found, host_ports=(draw(sampled_from(PORTS)),))


@st.composite
def changed(draw: st.DrawFn, plain: PodShape) -> PodShape:
    """The shape with up to two more rules."""
    found = replace(
        plain,
        namespace=draw(sampled_from(["shop", "shop", "bank"])),
        labels=tuple(sorted({**dict(plain.labels), "version": draw(sampled_from(["1", "2"]))}.items())),
    )
    for rule in draw(sampled_from([(), (), (_topology,), (_topology,), (_node_rules,), (_topology, _node_rules)])):
        found = draw(rule(found))
    return _run_by(found, draw(sampled_from(["", "", "", "", "", "", "", "sandbox", "special", "gone"])))


def _run_by(shape: PodShape, name: str) -> PodShape:
    """As the API server would admit it; a RuntimeClass that is not there adds nothing, which placement says."""
    return admitted(replace(shape, runtime_class=name), RUNTIME_CLASSES)
