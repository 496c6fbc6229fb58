"""How the daemon reports failures."""

from __future__ import annotations

import traceback

from reconciler.model.errors import Failure, Transient, Waiting
from reconciler.telemetry.logs import Log


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
