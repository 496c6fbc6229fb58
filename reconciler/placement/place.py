"""Places all demands of a problem: the entry to the package. Pure, so equal input gives an equal answer.

Bound pods keep what they have. Pending pods come next and take free room only, unless new nodes are asked for. Then come demands by
priority, namespace and name: on existing nodes first, and then on new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.placement import Placement, Unplaced
from reconciler.placement.amounts import ResourceColumns
from reconciler.placement.batches import Batch, batches_of
from reconciler.placement.constraints.attachments import with_attachments
from reconciler.placement.engine.domains.spread_order import in_order_of_spread
from reconciler.placement.engine.initial_state import initial_state
from reconciler.placement.engine.search.best import place_best
from reconciler.placement.engine.state import State
from reconciler.placement.memory import Memory
from reconciler.placement.needs import KnownNeeds
from reconciler.placement.problem import PlacementOptions, Problem
from reconciler.placement.reasons.unplaced import unplaced_chunks
from reconciler.placement.solution import placement_of


@dataclass(frozen=True, slots=True)
class Solution:
    """A placement with the state that it was read from. The optimizer starts from that state."""

    state: State
    batches: Sequence[Batch]
    unplaced: Sequence[Unplaced]
    options: PlacementOptions

    def placement(self) -> Placement:
        """The placement that the present state stands for."""
        return placement_of(self.state, self.batches, self.unplaced, self.options)


def place(problem: Problem, *, memory: Memory | None = None) -> Placement:
    """Where each chunk goes. Only what is certain to fit is placed; what could not be judged is in `assumptions`.

    memory: the previous placement, so that only what changed is computed again.
    """
    memory = memory or Memory()
    return memory.recall(problem) or memory.keep(solve(problem, memory).placement())


def solve(problem: Problem, memory: Memory) -> Solution:
    """Places everything once, in the fast mode."""
    attached = with_attachments(problem)
    problem, options = attached.problem, problem.options
    groups = (group for demand in problem.demands for group in demand.groups if group.count > 0)
    columns = ResourceColumns(group.shape.requests for group in groups)
    needs = KnownNeeds(columns.request)
    batches = batches_of(problem.demands, needs.of, include_pending=options.include_pending)
    state = initial_state(problem, attached, batches, columns=columns, needs=needs, memory=memory)
    missing = place_best(state, in_order_of_spread(state, batches))
    return Solution(state, batches, unplaced_chunks(state, problem, batches, missing), options)
