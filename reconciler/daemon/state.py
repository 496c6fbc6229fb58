"""When the daemon acts, what it reports about itself, and how it reports failures."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from datetime import timedelta

from reconciler.model.errors import Failure, Transient, Waiting
from reconciler.model.schedules import Edge
from reconciler.telemetry.logs import Log
from reconciler.timetable.agenda import Pacing, Trigger


@dataclass(frozen=True, slots=True)
class Timing:
    """poll: the time between polls of the repository. tick: between passes when nothing happens. pacing: waits after changes and
    failures. grace: how long a pass under way may take to end when the daemon is stopped."""

    poll: timedelta = timedelta(minutes=1)
    tick: timedelta = timedelta(minutes=5)
    pacing: Pacing = field(default_factory=Pacing)
    grace: timedelta = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class DaemonState:
    """What the daemon does and will do next. held_up: why the pass under way makes no progress, "" if it does."""

    leads: bool
    passes: int
    under_way: Trigger | None
    handled_request: str
    next_edge: Edge | None
    held_up: str = ""


def as_failure(error: Exception, log: Log) -> Failure:
    """The failure for any exception. One that is not a `Failure` is a defect of headroom, and the pass is retried."""
    if isinstance(error, Failure):
        return error
    place = traceback.extract_tb(error.__traceback__)[-1]
    log.debug("internal error", exc_info=error)
    return Transient(
        f"internal error: {type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}:{place.lineno})",
        hint="this is a defect of headroom; with logs.level debug its trace is logged",
    )


def tell(failure: Failure, event: str, log: Log, **facts: str) -> None:
    """Logs a failure at the level that its type calls for."""
    facts |= {"kind": type(failure).__name__, "message": failure.message}
    if failure.hint:
        facts["hint"] = failure.hint
    match failure:
        case Waiting():
            log.info(event, **facts)
        case Transient():
            log.warning(event, **facts)
        case _:
            log.error(event, **facts)
