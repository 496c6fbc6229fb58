"""Generated worlds in which NodePools allow few nodes and what is asked for is spread over them. Used by test_placement."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, ZONE_LABEL, NodePool
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.view import ClusterView
from tests.builders import buffer_ref, node, node_pool, one_of, pod, selects, shape, spread
from tests.properties.sampling import sampled_from
from tests.unit.placement.worlds import APPS, ZONES, World, catalogue

KEYS = (HOSTNAME_LABEL, HOSTNAME_LABEL, HOSTNAME_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)


@st.composite
def _constraints(draw: st.DrawFn, app: str, *, chooses: bool) -> tuple[TopologySpread, ...]:
    """Mostly over the chunks' own kind, as it is written; none, one, or one for each of two keys. chooses: the chunks select nodes:
    then those constraints look at all nodes, since a node that may or may not come to be selected is a thing of its own."""
    keys = draw(st.lists(sampled_from(KEYS), min_size=0, max_size=2, unique=True))
    return tuple(
        spread(
            key,
            draw(sampled_from([1, 1, 1, 2])),
            app=draw(sampled_from([app, app, app, *APPS])),
            min_domains=draw(sampled_from([None, None, None, 2, 3])),
            node_affinity_policy="Ignore" if chooses else "Honor",
        )
        for key in keys
    )


@st.composite
def _shapes(draw: st.DrawFn) -> PodShape:
    app = draw(sampled_from(APPS))
    plain = shape(
        draw(sampled_from(["100m", "500m", "1", "1500m", "3"])),
        draw(sampled_from(["128Mi", "1Gi"])),
        labels={"app": app},
        node_selector=draw(sampled_from([{}, {}, {}, {}, {ZONE_LABEL: "zone-a"}, {"team": "red"}])),
    )
    if draw(st.integers(0, 7)) == 0:
        selector = selects(draw(sampled_from(APPS)))
        apart = PodAffinityTerm(draw(sampled_from([HOSTNAME_LABEL, ZONE_LABEL])), selector)
        plain = replace(plain, pod_anti_affinity=(apart,))
    return replace(plain, topology_spread=draw(_constraints(app, chooses=bool(plain.node_selector))))


@st.composite
def _pools(draw: st.DrawFn) -> tuple[NodePool, ...]:
    nodes = st.integers(0, 4).map(lambda number: {"nodes": str(number)})
    cpu = sampled_from([4, 6, 8, 12, 20, 32]).map(lambda number: {"cpu": str(number)})
    found = []
    for name in draw(sampled_from([("general",), ("general",), ("general", "other")])):
        team = one_of("team", "blue", "red")
        zones = one_of(ZONE_LABEL, *draw(sampled_from([ZONES[:1], ZONES[:2], ZONES[1:]])))
        found.append(
            node_pool(
                name,
                weight=draw(sampled_from([0, 0, 10])),
                limits=draw(st.one_of(nodes, nodes, cpu)),
                requirements=draw(sampled_from([(), (), (team,), (zones,)])),
            )
        )
    return tuple(found)


@st.composite
def _demands(draw: st.DrawFn) -> tuple[Demand, ...]:
    """Those that may open nodes: of others a node that comes for somebody else is the second pass's news."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        counts = draw(sampled_from([(1,), (3,), (5,), (7,), (12,), (30,), (2, 3)]))
        groups = tuple(ChunkGroup(draw(_shapes()), count) for count in counts)
        found.append(
            Demand(
                ref=buffer_ref(f"demand-{number}"),
                groups=groups,
                desired=sum(counts),
                priority=draw(sampled_from([0, 0, 0, 5])),
                opens_nodes=True,
                whole=draw(st.integers(0, 5)) == 0,
            )
        )
    return tuple(found)


@st.composite
def crowded_worlds(draw: st.DrawFn) -> World:
    nodes = tuple(
        node(f"node-{number}", zone=draw(sampled_from(ZONES)), instance_type="medium", pool="general")
        for number in range(draw(sampled_from([0, 0, 0, 1, 2, 3])))
    )
    pods = tuple(
        pod(f"{item.name}-{index}", node=item.name, pod_shape=draw(_shapes()))
        for item in nodes
        for index in range(draw(st.integers(0, 2)))
    )
    types = catalogue(draw(sampled_from([ZONES, ZONES[:2], ZONES[:1]])))
    return World(ClusterView(nodes=nodes, pods=pods), draw(_pools()), types, draw(_demands()))
