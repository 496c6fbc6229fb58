"""Publishes everything about one pull request: the comment, annotations of lines, and the commit's status."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from reconciler.forge.sticky_comment import Mode, Posted, Report, post
from reconciler.model.source import Annotation, CommitStatus
from reconciler.ports import Forge


@dataclass(frozen=True, slots=True)
class Publication:
    """summary: Markdown above the annotations."""

    report: Report
    status: CommitStatus
    summary: str = ""
    annotations: tuple[Annotation, ...] = ()


def publish(
    forge: Forge,
    number: int,
    publication: Publication,
    mode: Mode = Mode.UPDATE,
    *,
    only_if_there: bool = False,
    wait: Callable[[float], None] = time.sleep,
) -> Posted:
    """Publishes, unless the commit is no longer the pull request's head: the run for the new one will do it."""
    commit = publication.report.commit
    if forge.pull_request(number).head_commit != commit:
        return Posted.STALE
    outcome = post(forge, number, publication.report, mode, only_if_there=only_if_there, wait=wait)
    if outcome is not Posted.STALE:
        if publication.annotations:
            forge.annotate(commit, publication.status, publication.summary, publication.annotations)
        forge.set_status(commit, publication.status)
    return outcome
