"""How many pods of a Job may still run at once (Kubernetes: batch/v1, JobSpec and JobStatus)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ENDINGS = frozenset({"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"})
"""Condition types of a Job that has ended or is ending: no more pods are created for it."""


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a Job. active None: not known."""

    succeeded: int = 0
    active: int | None = None
    ended: bool = False


def has_ended(conditions: Iterable[tuple[str, str]]) -> bool:
    """Whether one of a Job's conditions, each given as type and status, says that it has ended."""
    return any(kind in ENDINGS and status == "True" for kind, status in conditions)


def pods_left(
    parallelism: int | None,
    completions: int | None,
    *,
    suspended: bool = False,
    progress: JobProgress | None = None,
) -> int:
    """min(parallelism, completions - succeeded); none when it has ended or is suspended.

    Without completions the pods share a queue of work: once one has succeeded, no new pod is made.
    """
    done = progress or JobProgress()
    if suspended or done.ended:
        return 0
    most = 1 if parallelism is None else max(0, parallelism)
    if completions is not None:
        return max(0, min(most, completions - done.succeeded))
    if done.succeeded and parallelism is not None:
        return min(most, done.active or 0)
    return 0 if done.succeeded else most
