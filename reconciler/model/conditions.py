"""Status conditions as Kubernetes has them. Made by demand and the cycle's summarizer, written by cluster/status.py."""

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
    """One condition without its times: `lastTransitionTime` is kept or set by who writes it, since the core has no clock."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
