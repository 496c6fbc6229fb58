"""Reports as pages, Markdown shortened to what a forge takes, and what is posted of a difference on a pull request."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciler.comparison import Comparison
from reconciler.files import packaged_texts
from reconciler.forge.forges import check_forge, forge_token, kind_of, open_forge
from reconciler.forge.kind import CiJob
from reconciler.forge.pull_requests import Publication, Report
from reconciler.model.errors import Failure, Invalid
from reconciler.model.findings import Severity
from reconciler.ports import Annotation, CommitState, CommitStatus, Forge
from reconciler.render.environment import MOST_PAGE, Templates
from reconciler.report.difference.difference import Difference
from reconciler.report.difference.headline import problems
from reconciler.report.difference.page import difference_page
from reconciler.report.escaping import PAGE_FILTERS, page_value
from reconciler.report.plan.rows import trimmed
from reconciler.report.plan.words import sample_words
from reconciler.settings.settings import Settings
from reconciler.wiring.inputs import ReportedCluster

MOST_BYTES = 60_000
"""Of a Markdown report: GitHub takes 65,536 characters in a comment, and bytes are never fewer."""
_ROWS = (60, 30, 15, 8, 4, 2, 1, 0)
_MARKDOWN = "report.md.j2"


def rendered_page(name: str, page: Mapping[str, object]) -> str:
    """One of the packaged pages: `report.html.j2`, `schedule.html.j2`, … A Markdown report keeps below `MOST_BYTES`. Its lists are
    shortened until it does, and say by how much. The summary stays whole, and so does every other page."""
    templates = Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)
    if name != _MARKDOWN:
        return templates.render(name, page, most_output=MOST_PAGE)
    text = ""
    for most in _ROWS:
        text = templates.render(name, trimmed(page, most), most_output=MOST_PAGE)
        if len(text.encode()) < MOST_BYTES:
            break
    return text


_CONTEXT = "headroom/plan"


@dataclass(frozen=True, slots=True)
class PullRequestTarget:
    """The pull request to post on. head_commit: "" if only the plan knows it. url: the CI job's, "" outside of one. job_files: see `ForgeKind`.

    refusal: why nothing can be posted, or None. With a refusal the pull request counts as a fork's, which is not trusted.
    """

    forge: Forge
    number: int
    head_commit: str = ""
    url: str = ""
    job_files: str = ""
    from_fork: bool = False
    refusal: Failure | None = None

    def page_at(self, file: str) -> str:
        """Where people find this file of the job's folder among its artifacts; "" outside of CI. Where a file has no address, the job's
        page lists it."""
        if not (file and self.url):
            return ""
        return f"{self.url}/{self.job_files}/{file}" if self.job_files else self.url


@contextmanager
def destination(kind: str, number: int | None, settings: Settings) -> Iterator[PullRequestTarget]:
    """The pull request from CI's variables, overridden by settings and flags. Raises `Invalid` or `Stalled` if something is missing."""
    about = kind_of(kind)
    around = about.job(os.environ)
    number = number or around.number
    if number is None:
        raise Invalid(
            "the pull request's number is not known",
            hint=f"name it with --pull-request; in the CI of a pull request {about.number_variable} has it",
        )
    forge = forge_of(kind, settings, around)
    try:
        # A number from a flag may be another pull request's than the one that CI runs for.
        is_own_job = around.number in (None, number)
        refusal, from_fork = _asked(forge, number)
        head = around.head_commit if is_own_job else ""
        yield PullRequestTarget(forge, number, head, around.url, about.job_files, from_fork, refusal)
    finally:
        forge.close()


def _asked(forge: Forge, number: int) -> tuple[Failure | None, bool]:
    """Why nothing can be posted, or None, and whether the pull request is from a fork."""
    try:
        return None, forge.pull_request(number).from_fork
    except Failure as failure:
        return failure, True


def check_forge_of(settings: Settings) -> None:
    """Raises `Invalid` if the settings name no forge. The token may come later, since it is read again each time."""
    chosen = settings.forge
    check_forge(chosen.kind, repository=chosen.repository, api=chosen.api, plain_http=settings.git.plain_http)


def forge_of(kind: str, settings: Settings, around: CiJob | None = None) -> Forge:
    """The forge of the settings, or the one that CI runs on."""
    around = around or CiJob()
    chosen = settings.forge
    return open_forge(
        kind,
        repository=chosen.repository or around.repository,
        token=forge_token(kind, chosen.token_file),
        api=chosen.api or around.api,
        plain_http=settings.git.plain_http,
    )


def publication(
    comparison: Comparison,
    settings: Settings,
    *,
    cluster: ReportedCluster,
    at: datetime,
    commit: str = "",
    url: str = "",
    whole: str = "",
) -> Publication:
    """What to post. commit: the pull request's head, if that is not what was planned. whole: the address of the complete report."""
    change = comparison.change
    page = _page(comparison, cluster, whole)
    commit = commit or _commit_of(change.head.revision)
    words = change.failed_gates[0] if change.failed_gates else str(page["summary"])
    return Publication(
        Report(settings.path.strip("/"), at, commit, rendered_page("report.md.j2", page)),
        CommitStatus(status_context(settings), _state(change), words, url),
        str(page["summary"]),
        tuple(_annotations(change)),
    )


def complete_page(comparison: Comparison, cluster: ReportedCluster) -> str:
    """The report as an HTML page, from which nothing is left out."""
    return rendered_page("report.html.j2", _page(comparison, cluster))


def _page(comparison: Comparison, cluster: ReportedCluster, whole: str = "") -> dict[str, Any]:
    return difference_page(
        comparison.change, cluster=cluster.name, snapshot=cluster.snapshot, timelines=comparison.timelines, whole=whole
    )


def failed(failure: Failure, settings: Settings, url: str = "") -> CommitStatus:
    """The report about a commit that could not be planned."""
    return CommitStatus(status_context(settings), CommitState.ERROR, failure.message, url)


def status_context(settings: Settings) -> str:
    """The context of the status: a separate one for each folder that is planned alone."""
    path = settings.path.strip("/")
    return f"{_CONTEXT} ({path})" if path else _CONTEXT


def is_too_little(change: Difference, above: float) -> bool:
    """Whether there is nothing to make a first comment for. Nothing may be lost, wrong or left unjudged. Besides, 30 days may cost at most
    `above` more or less; invented prices are below no bound."""
    if problems(change) or change.conflicts or change.unjudged or change.kept_as_before:
        return False
    if not change.has_changes:
        return True
    return change.cost is not None and abs(change.cost.delta) < above and not sample_words(change.base, change.head)


def _state(change: Difference) -> CommitState:
    errors = any(finding.severity is Severity.ERROR for finding in change.new_findings)
    if errors or change.failed_gates or change.stalled:
        return CommitState.FAILURE
    return CommitState.NEUTRAL if change.unjudged else CommitState.SUCCESS


def _commit_of(revision: str | None) -> str:
    _, _, commit = (revision or "").partition("@sha1:")
    if not commit:
        raise Invalid("a working tree has no commit to post about", hint="name HEAD as a revision, such as main..HEAD")
    return commit


def _annotations(change: Difference) -> Iterator[Annotation]:
    for finding in change.new_findings:
        if finding.position is not None:
            about = f"{finding.ref}: " if finding.ref else ""
            hint = f"\n{finding.hint}" if finding.hint else ""
            yield Annotation(
                finding.position.file.removeprefix("./"),
                max(1, finding.position.line),
                finding.severity,
                finding.code,
                f"{about}{finding.message}{hint}",
            )
