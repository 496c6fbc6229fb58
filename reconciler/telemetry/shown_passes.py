"""Which passes a person at a console is shown."""

from __future__ import annotations

from datetime import UTC

from reconciler.model.changes import ApplyStatus, Outcome
from reconciler.ports import PassResult
from reconciler.report.plan.words import summary
from reconciler.telemetry.passes import Problems, problems_of


class ShownPasses:
    """A write that fails for the same cause at every pass, such as a conflict of field managers, is shown once."""

    def __init__(self) -> None:
        self._before: tuple[str, Problems] | None = None

    def is_news(self, result: PassResult) -> bool:
        """Whether it did something, or fails in another way than the pass before."""
        plan, change_set = result.plan, result.change_set
        if plan is None:
            return False
        if change_set is None:
            return True
        came_to = summary(plan, UTC), problems_of(change_set)
        before, self._before = self._before, came_to
        did = any(
            item.outcome is Outcome.APPLIED and not isinstance(item.write, ApplyStatus) for item in change_set.results
        )
        return plan.has_changes and (did or came_to != before)
