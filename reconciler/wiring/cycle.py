"""Settings as rules of a pass."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.cycle import Cycle
from reconciler.demand.size import Dialect
from reconciler.files import packaged_texts
from reconciler.model.buffers import Fulfilment
from reconciler.placement.problem import PlacementOptions
from reconciler.placement.surge.firm import SurgeMode
from reconciler.plan.holding.consolidation import ConsolidationRules
from reconciler.plan.launching.back_offs import BackOffRules
from reconciler.plan.launching.caps import PlanCaps
from reconciler.plan.objects.objects import Drift, Owner
from reconciler.plan.objects.prune import PruneRules
from reconciler.ports import Catalog, Clock, Cluster, Proposals, Source
from reconciler.settings.settings import Settings
from reconciler.stages.state import Rules
from reconciler.wiring.cluster import inventory_parent


def caps_of(settings: Settings, *, allow_removals: bool = False) -> PlanCaps:
    """allow_removals: whether what Git no longer declares goes at once, however much it is."""
    caps = settings.caps
    pruning = PruneRules(caps.prune_share, caps.prune_nodes_at_least, caps.prune_objects_at_least, allow_removals)
    return PlanCaps(
        caps.new_nodes_per_pass,
        caps.price_per_hour,
        caps.nodes_per_pool,
        pruning,
        caps.nodes_per_request,
    )


def make_cycle(
    settings: Settings,
    *,
    source: Source,
    cluster: Cluster,
    catalog: Catalog,
    clock: Clock,
    progress: Callable[[str], None] = lambda _stage: None,
    caps: PlanCaps | None = None,
    proposals: Proposals | None = None,
) -> Cycle:
    """caps: None for those of the settings. proposals: where plans go instead of the cluster."""
    placement, inventory = settings.placement, inventory_parent(settings)
    return Cycle(
        source=source,
        cluster=cluster,
        catalog=catalog,
        clock=clock,
        rules=Rules(
            dialect=Dialect(settings.dialect),
            caps=caps_of(settings) if caps is None else caps,
            placement=PlacementOptions(
                instance_types=placement.instance_types,
                optimal=placement.mode == "optimal",
            ),
            optimal_within=placement.optimal_within,
            surge=SurgeMode(placement.surge),
            not_ready_grace=placement.not_ready_grace,
            consolidation=ConsolidationRules(placement.consolidation_share, placement.consolidation_per_hour),
            back_off=BackOffRules(placement.back_off, placement.back_off_at_most),
            inventory=inventory,
            owner=Owner(inventory.id, inventory.words),
            check_placement=placement.check,
            templates_folder=settings.templates.strip("/"),
            suspend=settings.suspend,
            allow_empty=settings.allow_empty,
            drift=Drift(settings.drift),
            fulfilment=Fulfilment(settings.buffers.fulfilment),
            balloon_image=settings.buffers.balloon_image,
            shrink_after=settings.buffers.shrink_after,
            requests=settings.requests,
        ),
        packaged_templates=packaged_texts("templates", suffix=".j2"),
        progress=progress,
        proposals=proposals,
    )
