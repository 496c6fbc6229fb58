"""Generated worlds with the rarer rules too: what `worlds` draws, and on top of it combined and unusual constraints.

Beside plain worlds these have spread over capacity types, minDomains, inclusion policies, matchLabelKeys and soft rules; affinity
across namespaces; required and preferred terms with every operator; extended resources and RuntimeClasses; pools with minValues,
startup taints, labels and custom labels, static ones among them; offerings that are sold out or reserved; overlays of price and
capacity; nodes that are young or leaving, their NodeClaims being deleted or they themselves gone while pods are still on them, and
NodeClaims on their way; volumes, shared too, and resource claims; and every option of a placement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.attachments import Storage
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import INITIALIZED_LABEL, Node, NodeClaim
from reconciler.model.pods import DaemonSet, Pod, PodShape
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.problem import PlacementOptions
from tests.builders import shape
from tests.properties import wide_catalogue, wide_nodes, wide_volumes
from tests.properties.sampling import sampled_from
from tests.properties.wide_shapes import changed
from tests.unit.placement.worlds import World, pools, shapes, worlds

NAMESPACES: Mapping[str, Mapping[str, str]] = {"shop": {"team": "red"}, "bank": {"team": "blue"}}
SMALL = shape("100m", "128Mi", labels={"app": "web"})
STARTUP = (wide_catalogue.STARTUP,)


@st.composite
def _options(draw: st.DrawFn) -> PlacementOptions:
    return PlacementOptions(
        include_pending=draw(st.booleans()),
        keeping=draw(sampled_from([frozenset(), frozenset(), frozenset({"node-0"}), frozenset({"node-1", "claim-1"})])),
        instance_types=draw(sampled_from([20, 20, 2, 1])),
        back_offs=draw(sampled_from([frozenset(), frozenset(), frozenset({("medium", "zone-b", "on-demand")})])),
        leaving=draw(sampled_from([frozenset(), frozenset(), frozenset({"node-2", "claim-0"})])),
    )


@st.composite
def _nodes(draw: st.DrawFn, world: World) -> tuple[tuple[Node, ...], tuple[NodeClaim, ...]]:
    nodes = world.view.nodes
    if draw(st.integers(0, 3)):
        nodes = tuple(draw(wide_nodes.node(item, STARTUP)) for item in nodes)
    claims = [
        wide_nodes.claim_of(item, number, STARTUP, world.instance_types)
        for number, item in enumerate(nodes)
        if item.label(INITIALIZED_LABEL) is None and draw(st.booleans())
    ]
    claims += [
        replace(wide_nodes.claim_of(item, number, STARTUP, world.instance_types), deleting=True)
        for number, item in enumerate(nodes)
        if item.label(INITIALIZED_LABEL) is not None and draw(st.integers(0, 7)) == 0
    ]
    claims += [
        draw(wide_nodes.node_claim(number, world.node_pools, world.instance_types))
        for number in range(draw(sampled_from([0, 0, 1, 2])) if world.node_pools else 0)
    ]
    return nodes, tuple(sorted(claims, key=lambda item: item.name))


@st.composite
def attaching(draw: st.DrawFn, plain: PodShape, kinds: str, uid: str) -> PodShape:
    """The shape of the pod of that UID with claims to volumes, perhaps resource claims, or both."""
    found = plain
    if kinds in {"volumes", "both"}:
        found = draw(wide_volumes.with_volumes(found, uid))
    if kinds in {"devices", "both"}:
        found = replace(found, claims_devices=draw(sampled_from([False, False, True])))
    return found


@st.composite
def _bound(draw: st.DrawFn, pod: Pod, kinds: str) -> Pod:
    found = draw(changed(pod.shape))
    if kinds in {"volumes", "both"}:
        found = draw(wide_volumes.with_volumes(found, pod.name))
    if kinds in {"devices", "both"}:
        found = replace(found, claims_devices=draw(st.booleans()))
    daemon = draw(st.integers(0, 7)) == 0
    return replace(
        pod,
        shape=found,
        node_name="gone" if draw(st.integers(0, 15)) == 0 else pod.node_name,
        namespace=found.namespace,
        deleting=draw(st.integers(0, 9)) == 0,
        owner_kind="DaemonSet" if daemon else pod.owner_kind,
        owner_name="agent" if daemon else pod.owner_name,
    )


@st.composite
def _demands(draw: st.DrawFn, world: World, kinds: str) -> tuple[Demand, ...]:
    """Chunks never have volumes: only pods do. Both may have resource claims."""
    found = []
    for item in world.demands:
        groups = []
        for group in item.groups:
            wide = draw(changed(group.shape))
            if item.is_pending_pod:
                wide = draw(attaching(wide, kinds, item.ref.name))
            elif kinds in {"devices", "both"}:
                wide = replace(wide, claims_devices=draw(sampled_from([False, False, True])))
            groups.append(ChunkGroup(wide, group.count))
        found.append(
            replace(
                item,
                groups=tuple(groups),
                opens_nodes=item.opens_nodes or (item.is_pending_pod and draw(st.booleans())),
            )
        )
    for number in range(draw(st.integers(1, 4))) if kinds != "none" else ():
        plain = draw(st.one_of(*[st.just(SMALL)] * 4, shapes().flatmap(changed)))
        wide = draw(attaching(plain, kinds, f"pod-{number}"))
        ref = ObjectRef("", POD_KIND, wide.namespace, f"pod-{number}")
        priority = draw(sampled_from([0, 0, 5]))
        found.append(
            Demand(
                ref, (ChunkGroup(wide, 1),), 1, priority=priority, opens_nodes=draw(sampled_from([True, True, False]))
            )
        )
    return tuple(found)


@st.composite
def wide_worlds(draw: st.DrawFn) -> World:
    plain = draw(worlds())
    found = plain.node_pools or draw(pools())
    world = replace(
        plain,
        node_pools=tuple(draw(wide_catalogue.pool(item)) for item in found),
        instance_types=tuple(draw(wide_catalogue.kind(item)) for item in plain.instance_types),
    )
    kinds = draw(sampled_from(["none", "none", "volumes", "volumes", "devices", "devices", "both"]))
    nodes, claims = draw(_nodes(world))
    pods = tuple(draw(_bound(item, kinds)) for item in world.view.pods)
    driver = DaemonSet("system", "driver", shape("200m", "128Mi", namespace="system", node_selector={"team": "red"}))
    view: ClusterView = replace(
        world.view,
        nodes=nodes,
        node_claims=claims,
        pods=tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name))),
        daemon_sets=(*world.view.daemon_sets, *draw(sampled_from([(), (driver,)]))),
        namespaces=NAMESPACES,
        storage=draw(wide_volumes.storages()) if kinds in {"volumes", "both"} else Storage(),
    )
    options = draw(_options())
    demands = tuple(
        replace(item, opens_nodes=item.opens_nodes and (options.include_pending or not item.is_pending_pod))
        for item in draw(_demands(world, kinds))
    )
    overlays = draw(wide_catalogue.overlays())
    return World(view, world.node_pools, world.instance_types, demands, overlays, options)
