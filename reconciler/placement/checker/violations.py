"""Checks a placement against the rules from scratch. The entry to the checker: called by tests, by place for what the optimising
mode found, and by the cycle where the setting `placement.check` asks for it.

It judges node by node in plain Python, as plainly as the rules read: what is bound and what is placed together must be what
kube-scheduler would accept, on every type, zone and capacity type that a planned node lists.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.buffers import Recreation
from reconciler.model.machines import Machine
from reconciler.model.nodes import NODEPOOL_LABEL, Node, NodeClaim
from reconciler.model.placement import Holding, Placement
from reconciler.model.pods import Pod
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint
from reconciler.placement.checker.arrivals import Arrivals
from reconciler.placement.checker.devices import device_violations
from reconciler.placement.checker.examples import Examples
from reconciler.placement.checker.nodes import Scene, existing_violations
from reconciler.placement.checker.overlays import valid_overlays
from reconciler.placement.checker.planned_nodes import PlannedNodes, limit_violations
from reconciler.placement.checker.reservations import reservation_violations
from reconciler.placement.checker.sites import OLDER_LABELS, Site, Tenant, is_initialized
from reconciler.placement.checker.spot import spot_violations
from reconciler.placement.checker.topology import topology_violations
from reconciler.placement.checker.volumes import Shelves, volume_violations
from reconciler.placement.problem import Problem

_YOUNG_TAINTS = ("node.kubernetes.io/not-ready", "karpenter.sh/unregistered", "readiness.k8s.io/")


def violations(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """One sentence for each broken rule, sorted; empty when the placement holds."""
    view, demands, options = problem.view, problem.demands, problem.options
    node_pools, instance_types = problem.node_pools, problem.instance_types
    pods_on: dict[str | None, list[Pod]] = {}
    for pod in view.pods:
        pods_on.setdefault(pod.node_name, []).append(pod)
    shelves = Shelves.of(view.storage)
    pools = {pool.name: pool for pool in node_pools}
    types = {kind.name: kind for kind in instance_types}
    overlays = valid_overlays(problem.overlays, pools.values(), types.values())
    scene = Scene(
        view,
        pools,
        types,
        {demand.ref: demand for demand in demands},
        overlays,
        pods_on,
        {node.name: node for node in reversed(view.nodes)},
        {claim.name: claim for claim in reversed(view.node_claims)},
        {item.node.name: item for item in reversed(view.machines) if item.node is not None},
        shelves,
        Arrivals(pools, types, overlays),
        options.back_offs,
    )
    unknown = tuple(sorted(set(_unknown(scene, placement))))
    if unknown:
        return unknown
    found = [*_counted(scene, placement)]
    sites, existing = _existing_sites(scene)
    for occupied in placement.occupied:
        site = existing.get((occupied.node, occupied.node_claim if occupied.node is None else None))
        if site is None:
            found.append(f"{occupied.node or occupied.node_claim}: there is no such bin")
            continue
        site.tenants += _tenants(scene, occupied.holdings)
        found += existing_violations(scene, site, occupied)
    nodes = PlannedNodes(scene)
    for number, planned in enumerate(placement.planned):
        site = nodes.site(planned, number)
        site.tenants += _tenants(scene, planned.holdings)
        sites.append(site)
        found += nodes.violations(planned, site)
    found += limit_violations(scene, placement.planned)
    found += topology_violations(sites, view.namespaces)
    examples = Examples(view)
    found += volume_violations(view.pods, shelves, examples, sites)
    found += device_violations(view, demands, examples, sites)
    found += reservation_violations(view, scene.types, placement.planned)
    totals = {item.ref: sum(group.count for group in item.groups) for item in demands if not item.is_pending_pod}
    found += spot_violations(totals, existing, placement, options.spot_share)
    return tuple(sorted(set(found)))


def _unknown(scene: Scene, placement: Placement) -> Iterable[str]:
    """What is named and not there; nothing else can be judged then."""
    for planned in placement.planned:
        if planned.node_pool not in scene.pools:
            yield f"NodePool {planned.node_pool} is not there"
        for name in planned.instance_types:
            if name not in scene.types:
                yield f"instance type {name} is not there"
    on_existing = [holding for item in placement.occupied for holding in item.holdings]
    on_new = [holding for item in placement.planned for holding in item.holdings]
    for holding in (*on_existing, *on_new):
        demand = scene.demands.get(holding.demand)
        if demand is None or holding.group >= len(demand.groups):
            yield f"{holding.demand}: there is no group {holding.group} of it"


def _counted(scene: Scene, placement: Placement) -> Iterable[str]:
    placed: dict[tuple[ObjectRef, int], int] = {}
    on_existing = [holding for item in placement.occupied for holding in item.holdings]
    on_new = [holding for item in placement.planned for holding in item.holdings]
    for holding in (*on_existing, *on_new):
        key = (holding.demand, holding.group)
        placed[key] = placed.get(key, 0) + holding.count
    for missing in placement.unplaced:
        key = (missing.demand, missing.group)
        placed[key] = placed.get(key, 0) + missing.count
    wanted = {
        (demand.ref, number): group.count
        for demand in scene.demands.values()
        for number, group in enumerate(demand.groups)
        if group.count
    }
    if placed != wanted:
        yield f"placed and unplaced are {sorted(placed.items())}, asked for were {sorted(wanted.items())}"
    short = {missing.demand for missing in placement.unplaced}
    opened = {holding.demand for holding in on_new}
    somewhere = opened | {holding.demand for holding in on_existing}
    for ref, demand in scene.demands.items():
        if ref in opened and not demand.opens_nodes:
            yield f"{ref}: no new nodes may be made for it"
        if demand.whole and ref in short and ref in somewhere:
            yield f"{ref}: placed in part"


def _tenants(scene: Scene, holdings: Iterable[Holding]) -> list[Tenant]:
    found = []
    for holding in holdings:
        demand = scene.demands[holding.demand]
        found.append(
            Tenant(
                demand.groups[holding.group].shape,
                holding.count,
                chunk=True,
                pending=demand.is_pending_pod,
                waits=demand.is_pending_pod and not demand.opens_nodes,
                keeps_minimum=demand.recreation is Recreation.KEEP_MINIMUM,
            )
        )
    return found


def _existing_sites(scene: Scene) -> tuple[list[Site], dict[tuple[str | None, str | None], Site]]:
    existing: dict[tuple[str | None, str | None], Site] = {}
    for machine in scene.view.machines:
        node, claim = machine.node, machine.node_claim
        if node is not None:
            existing[node.name, None] = _node_site(scene, machine, node)
        elif claim is not None:
            existing[None, claim.name] = scene.arrivals.site(claim)
    for pod in scene.view.pods:
        if (pod.node_name, None) in existing:
            existing[pod.node_name, None].tenants.append(Tenant(pod.shape, 1, chunk=False, leaving=pod.deleting))
    return list(existing.values()), existing


def _node_site(scene: Scene, machine: Machine, node: Node) -> Site:
    """One that Karpenter has not registered yet gets what its NodeClaim says besides."""
    claim = machine.node_claim
    taints = list(node.taints) if is_initialized(node, claim) else _lasting(scene, node, claim)
    if claim is None or not machine.awaits_registration:
        return Site(node.name, dict(node.labels), tuple(taints))
    promised = scene.arrivals.site(claim)
    labels = {**promised.labels, **dict(node.labels), **dict(claim.labels)}
    labels |= {older: labels[key] for older, key in OLDER_LABELS.items() if key in labels and older not in labels}
    taints += [taint for taint in claim.taints if taint not in taints]
    return Site(node.name, labels, tuple(taints), options=promised.options)


def _lasting(scene: Scene, node: Node, claim: NodeClaim | None) -> list[Taint]:
    pool = scene.pools.get(node.label(NODEPOOL_LABEL) or "")
    startup = claim.startup_taints if claim else pool.template.startup_taints if pool else ()
    keys = {(taint.key, taint.effect) for taint in startup}
    return [
        taint
        for taint in node.taints
        if (taint.key, taint.effect) not in keys and not taint.key.startswith(_YOUNG_TAINTS)
    ]
