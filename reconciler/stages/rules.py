"""How passes are made: settings that the stages need, in the stages' own types."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from reconciler.cluster.inventory import InventoryParent
from reconciler.demand.dialect import Dialect
from reconciler.model.buffers import SHRINK_AFTER, Fulfilment
from reconciler.placement.problem import PlacementOptions
from reconciler.placement.surge.firm import SurgeMode
from reconciler.plan.facts import PlanRules
from reconciler.plan.holding.consolidation import ConsolidationRules
from reconciler.plan.launching.back_offs import BackOffRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(PlanRules):
    """optimal_within: how long placement may look for something cheaper. surge: what full buffers promise. not_ready_grace: how long chunks wait for a node that is not
    ready. check_placement: whether the checker judges it too.
    templates_folder: in the repository, beside the manifests. suspend: plan, and write nothing.

    allow_empty: an empty repository is obeyed, and not taken for a mistake. fulfilment: for buffers that do not name one.
    shrink_after: how long a share of running pods must be less before its buffer shrinks."""

    dialect: Dialect
    placement: PlacementOptions
    inventory: InventoryParent
    optimal_within: timedelta
    surge: SurgeMode = SurgeMode.PLANNED
    not_ready_grace: timedelta = timedelta(minutes=1)
    back_off: BackOffRules = field(default_factory=BackOffRules)
    consolidation: ConsolidationRules = field(default_factory=ConsolidationRules)
    check_placement: bool = False
    templates_folder: str = "templates"
    suspend: bool = False
    allow_empty: bool = False
    fulfilment: Fulfilment = Fulfilment.PLACEHOLDER
    shrink_after: timedelta = SHRINK_AFTER
