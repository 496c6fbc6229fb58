"""Structured logs on stderr: JSON lines or a form for people, with secrets masked. Configured once, by wiring.

Messages of other libraries, from warnings up, are logged in the same way. A failure is logged at the level that its type calls for.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any, Protocol, TextIO

from reconciler.model.errors import Failure, Transient, Waiting, message_of
from reconciler.model.redaction import redacted
from reconciler.report.escaping import takes_colours, terminal, without_url_secrets

OWN_LOGGERS = ("reconciler", "headroom")


class Log(Protocol):
    """The interface of a logger: an event in a few words, with facts as keywords."""

    def debug(self, event: str, **facts: Any) -> Any: ...
    def info(self, event: str, **facts: Any) -> Any: ...
    def warning(self, event: str, **facts: Any) -> Any: ...
    def error(self, event: str, **facts: Any) -> Any: ...


def _masked(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    shown = {key: without_url_secrets(value) if isinstance(value, str) else value for key, value in event.items()}
    return {key: value if key.startswith("_") else redacted(value, key) for key, value in shown.items()}


def _printable(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Makes an event safe for a terminal: no name or message can move the cursor, reverse the text or start a new line."""
    return {key: value if key.startswith("_") else _shown(value, key) for key, value in event.items()}


def _shown(value: Any, key: str) -> Any:
    if isinstance(value, str):
        # A traceback keeps its lines.
        return "\n".join(map(terminal, value.split("\n"))) if key == "exception" else terminal(value)
    return value


def configure_logs(*, form: str = "console", level: str = "info", stream: TextIO | None = None) -> None:
    """form: `console` or `json`; level: debug, info, warning or error, for headroom's own messages.

    A later call replaces what an earlier one set. Times are RFC 3339 in UTC.
    """
    import structlog

    output = stream or sys.stderr
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        _masked,
    ]
    renderer: Any
    last: list[Any] = []
    if form == "json":
        renderer = structlog.processors.JSONRenderer(sort_keys=True)
    else:
        last = [_printable]
        renderer = structlog.dev.ConsoleRenderer(
            colors=takes_colours(output, os.environ),
            timestamp_key="time",
            exception_formatter=structlog.dev.plain_traceback,
        )
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())


def logger(name: str = "headroom", **facts: str) -> Log:
    """A logger by name. Use `headroom` or a module of this package, so that the level applies. facts: in every message."""
    import structlog

    log: Log = structlog.stdlib.get_logger(name, **facts)
    return log


def as_failure(error: Exception, log: Log) -> Failure:
    """The failure for any exception. One that is not a `Failure` is a defect of headroom, and the pass is retried."""
    if isinstance(error, Failure):
        return error
    log.debug("internal error", exc_info=error)
    return Transient(message_of(error), hint="this is a defect of headroom; with logs.level debug its trace is logged")


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
