"""Status conditions as Kubernetes has them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ConditionStatus(StrEnum):
    """The three values of `status` in a Kubernetes condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition without its times. The writer sets `lastTransitionTime`, since the core has no clock."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
