"""The parameters of headroom's provisioning classes, and what their values mean.

Names and values are Cluster Autoscaler's. It ignores `reserve` and `bookedForSeconds`, with a line in its log. `maxRunDurationSeconds` is the
name that GKE's queued provisioning has for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from reconciler.model.provisioning_requests import RequestKind, RequestRules
from reconciler.model.quantity import whole_number

VALID_UNTIL = "ValidUntilSeconds"
NO_RETRY = "noRetry"
"""With "true" the request fails with its first negative check."""
PROCESSOR_INSTANCE = "processorInstance"
"""Directs a check to one of several Cluster Autoscalers."""
RESERVE = "reserve"
"""The same as the annotation `headroom.dev/reserve`, for those who can set parameters but no annotations, such as users of Kueue."""
BOOKED_FOR = "bookedForSeconds"
"""How long the capacity is set aside, in place of the setting (autoscaler #6555)."""
MOST_RUN = "maxRunDurationSeconds"
"""How long the nodes that are made live at most."""
PARAMETERS = {
    BOOKED_FOR: frozenset(RequestKind),
    MOST_RUN: frozenset({RequestKind.ATOMIC}),
    VALID_UNTIL: frozenset(RequestKind),
    NO_RETRY: frozenset({RequestKind.CHECK}),
    PROCESSOR_INSTANCE: frozenset({RequestKind.CHECK}),
    RESERVE: frozenset({RequestKind.ATOMIC}),
}
"""By parameter, the kinds of classes that have it."""
LONGEST_CHECK = timedelta(days=7)
"""How long a negative check is repeated. Cluster Autoscaler gives up on a request after the same time."""
_MOST_SECONDS = 10**9
"""Some thirty years."""


@dataclass(frozen=True, slots=True)
class ParameterProblem:
    """A parameter that is ignored. unknown: classes of this kind have no such parameter. Otherwise its value is invalid."""

    name: str
    message: str
    hint: str
    unknown: bool = False


def parameters_of(kind: RequestKind) -> tuple[str, ...]:
    """The parameters of classes of this kind, sorted."""
    return tuple(sorted(name for name, kinds in PARAMETERS.items() if kind in kinds))


def parameter_problems(kind: RequestKind, parameters: Iterable[tuple[str, str]]) -> Iterator[ParameterProblem]:
    """Which of these parameters are ignored, and why."""
    for name, value in parameters:
        if name not in PARAMETERS:
            known = ", ".join(parameters_of(kind))
            yield ParameterProblem(name, f"{kind.value} has no parameter {name}", f"it has {known}", unknown=True)
        elif kind not in PARAMETERS[name]:
            others = ", ".join(sorted(other.value for other in PARAMETERS[name]))
            message = f"{name} has no effect: only {others} has it, and this class is {kind.value}"
            yield ParameterProblem(name, message, "remove it", unknown=True)
        elif name in {VALID_UNTIL, BOOKED_FOR, MOST_RUN} and seconds_of(value) is None:
            message = f"{name} must be a number of seconds above 0, not {value!r}; the default is used"
            yield ParameterProblem(name, message, _seconds(name, kind))
        elif name == NO_RETRY and value not in {"true", "false"}:
            message = f'{name} must be "true" or "false", not {value!r}; the check is repeated'
            yield ParameterProblem(name, message, _yes_or_no(name, value))
        elif name == RESERVE and value not in {"true", "false"}:
            message = f'{name} must be "true" or "false", not {value!r}; the nodes are not reserved'
            yield ParameterProblem(name, message, _yes_or_no(name, value))


def default_validity(kind: RequestKind, rules: RequestRules) -> timedelta:
    """How long a request without ValidUntilSeconds is tried."""
    return rules.valid_for if kind is RequestKind.ATOMIC else LONGEST_CHECK


def seconds_of(value: str | None) -> timedelta | None:
    """The value of a parameter in seconds; None where it is absent or invalid."""
    seconds = whole_number(value) if value is not None and value[:1].isdecimal() else None
    return None if seconds is None or not 0 < seconds <= _MOST_SECONDS else timedelta(seconds=seconds)


def _seconds(name: str, kind: RequestKind) -> str:
    rules = RequestRules()
    defaults = {VALID_UNTIL: default_validity(kind, rules), BOOKED_FOR: rules.booked_for}
    if name not in defaults:
        return f'write {name}: "3600" for an hour, or remove it'
    return f'write {name}: "{defaults[name].total_seconds():.0f}", which is the default, or remove it'


def _yes_or_no(name: str, value: str) -> str:
    meant = value.strip().lower()
    return f'did you mean {name}: "{meant}"?' if meant in {"true", "false"} else f'write {name}: "true", or remove it'
