"""What was pruned within the current hour. The inventory remembers it, so that passes and restarts do not renew the share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.refs import ObjectRef

PRUNES_KEY = "prunes"
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PruneHour:
    """since: when the first object was pruned, which began the hour. held: size of the inventory then. pruned: names since."""

    since: datetime
    held: int
    pruned: frozenset[str] = frozenset()

    @property
    def ends(self) -> datetime:
        return self.since + HOUR

    def most(self, share: float) -> int:
        """How many may go within it: at least one."""
        return max(1, int(self.held * share))

    def split(self, due: Sequence[ObjectRef], share: float) -> tuple[list[ObjectRef], list[ObjectRef]]:
        """What may go now, and what waits. An object that was pruned in this hour and is still there counts once."""
        left = self.most(share) - len(self.pruned)
        now: list[ObjectRef] = []
        waiting: list[ObjectRef] = []
        for ref in due:
            if str(ref) in self.pruned:
                now.append(ref)
            elif left > 0:
                now.append(ref)
                left -= 1
            else:
                waiting.append(ref)
        return now, waiting

    def after(self, pruned: Iterable[ObjectRef]) -> PruneHour:
        return replace(self, pruned=self.pruned | {str(ref) for ref in pruned})

    def memory(self) -> dict[str, Any]:
        """JSON values for the inventory; nothing while nothing was pruned."""
        if not self.pruned:
            return {}
        return {PRUNES_KEY: {"since": self.since.isoformat(), "held": self.held, "pruned": sorted(self.pruned)}}


def prune_hour(memory: Mapping[str, Any], members: int, now: datetime) -> PruneHour:
    """The current hour, or a new one. An entry of another format was written by another version, and is dropped."""
    value = memory.get(PRUNES_KEY)
    try:
        if value is not None:
            hour = PruneHour(datetime.fromisoformat(value["since"]), int(value["held"]), frozenset(value["pruned"]))
            if now < hour.ends:
                return hour
    except (KeyError, TypeError, ValueError):
        pass
    return PruneHour(now, members)
