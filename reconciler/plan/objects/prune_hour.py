"""The hour within which removals take only a share, as the inventory remembers it: passes and restarts do not renew it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

PRUNES_KEY = "prunes"
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PruneHour:
    """What removals took within the current hour.

    since: when the first removal began the hour. held, nodes_held: objects of the inventory and nodes with chunks then. pruned, released:
    names of what went since. stepped: nodes that buffers were let down by. let_down: by buffer, the chunks that are left of it while it waits.
    """

    since: datetime
    held: int
    nodes_held: int
    pruned: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    stepped: int = 0
    let_down: Mapping[str, int] = field(default_factory=dict)

    @property
    def ends(self) -> datetime:
        return self.since + HOUR

    def memory(self) -> dict[str, Any]:
        """JSON values for the inventory; nothing while nothing was removed."""
        if not (self.pruned or self.released or self.let_down):
            return {}
        nodes = {"held": self.nodes_held, "released": sorted(self.released), "stepped": self.stepped}
        hour = {"since": self.since.isoformat(), "held": self.held, "pruned": sorted(self.pruned), "nodes": nodes}
        return {PRUNES_KEY: hour | ({"letDown": dict(sorted(self.let_down.items()))} if self.let_down else {})}


def prune_hour(memory: Mapping[str, Any], members: int, nodes: int, now: datetime) -> PruneHour:
    """The current hour, or a new one. An entry of another format was written by another version, and is dropped."""
    value = memory.get(PRUNES_KEY)
    try:
        if value is not None:
            hour = PruneHour(
                datetime.fromisoformat(value["since"]),
                int(value["held"]),
                int(value["nodes"]["held"]),
                frozenset(value["pruned"]),
                frozenset(value["nodes"]["released"]),
                int(value["nodes"]["stepped"]),
                {str(name): int(count) for name, count in value.get("letDown", {}).items()},
            )
            return hour if now < hour.ends else PruneHour(now, members, nodes, let_down=hour.let_down)
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    return PruneHour(now, members, nodes)
