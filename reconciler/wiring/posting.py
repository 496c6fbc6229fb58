"""Reports as pages, Markdown shortened to what a forge takes, and what is posted of a difference on a pull request."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reconciler.comparison import Comparison
from reconciler.files import packaged_texts
from reconciler.forge.forges import forge_token, kind_of, open_forge
from reconciler.forge.kind import CiJob
from reconciler.forge.pull_requests import Mode, Publication, Published, Report, publish
from reconciler.model.errors import Failure, Invalid
from reconciler.model.findings import Severity
from reconciler.ports import Annotation, CommitState, CommitStatus, Forge
from reconciler.render.environment import Templates
from reconciler.report.difference.difference import Difference
from reconciler.report.difference.headline import problems
from reconciler.report.difference.page import difference_page
from reconciler.report.escaping import PAGE_FILTERS, page_value
from reconciler.report.plan.rows import ReportPage, trimmed
from reconciler.report.plan.words import sample_words
from reconciler.settings.settings import Settings
from reconciler.wiring.inputs import ReportedCluster

MOST_BYTES = 60_000
"""Of a Markdown report: GitHub takes 65,536 characters in a comment, and bytes are never fewer."""
_ROWS = (60, 30, 15, 8, 4, 2, 1, 0)
_MARKDOWN = "report.md.j2"


def rendered_page(name: str, page: ReportPage | Mapping[str, object]) -> str:
    """One of the packaged pages: `report.html.j2`, `schedule.html.j2`, … A Markdown report keeps below `MOST_BYTES`. Its lists are
    shortened until it does, and say by how much; if that is not enough, the part before its details is all. Every other page stays whole."""
    templates = Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)
    if not isinstance(page, ReportPage):
        return templates.render(name, page)
    if name != _MARKDOWN:
        return templates.render(name, page.values)
    text = ""
    for most in _ROWS:
        text = templates.render(name, trimmed(page, most).values)
        if len(text.encode()) < MOST_BYTES:
            break
    else:
        summary = text.partition("<details")[0].encode()[:MOST_BYTES].decode(errors="ignore")
        text = f"{summary.rstrip()}\n\n_The rest is too long for a comment._\n"
    return text


_CONTEXT = "headroom/plan"


@dataclass(frozen=True, slots=True)
class PullRequestReport:
    """What is posted on one pull request: a comment, the commit's status, and remarks beside lines."""

    forge: Forge
    number: int
    settings: Settings
    head_commit: str = ""
    """The pull request's; "" if only the plan knows it."""
    url: str = ""
    """Where the status leads: the CI job, or the daemon's page; "" for nowhere."""
    whole: str = ""
    """The address of the complete report, "" for none."""
    mode: Mode = Mode.UPDATE
    above: float = 0.0
    """No first comment is made where nothing is lost or wrong, and 30 days cost less than this more or less. In USD."""
    unchanged_too: bool = False
    """Whether a first comment is made where nothing changes."""
    from_fork: bool = False
    refusal: Failure | None = None
    """Why the forge did not tell of the pull request. It then counts as a fork's, which is not trusted."""
    made: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When this run began, by this machine's clock. The instant that is planned for may be any."""

    def post(self, comparison: Comparison, cluster: ReportedCluster, place: str | None) -> Published:
        """Posts the report. place: where the folder that was read is in its repository. Raises `Invalid` for a head without a commit; the forge's failures are in the result."""
        if self.refusal is not None:
            return Published(failure=self.refusal)
        change = comparison.change
        page = _page(comparison, cluster, self.whole)
        commit = self.head_commit or _commit_of(change.head.revision)
        words = change.failed_gates[0] if change.failed_gates else page.summary
        publication = Publication(
            Report(self.settings.path.strip("/"), self.made, commit, rendered_page("report.md.j2", page)),
            CommitStatus(self._context, _state(change), words, self.url),
            page.summary,
            tuple(_annotations(change, place)),
        )
        silent = is_too_little(change, self.above) and (change.has_changes or not self.unchanged_too)
        return publish(self.forge, self.number, publication, self.mode, only_if_there=silent)

    def failed(self, failure: Failure) -> None:
        """Says on the commit that it could not be planned. Whoever calls tells the failure too, so the forge may fail here."""
        if self.head_commit and self.refusal is None:
            with suppress(Failure):
                status = CommitStatus(self._context, CommitState.ERROR, failure.message, self.url)
                self.forge.set_status(self.head_commit, status)

    @property
    def _context(self) -> str:
        """The context of the status: a separate one for each folder that is planned alone."""
        path = self.settings.path.strip("/")
        return f"{_CONTEXT} ({path})" if path else _CONTEXT


@contextmanager
def pull_request_of(
    kind: str, number: int | None, settings: Settings, *, page: str, mode: Mode, above: float, unchanged_too: bool
) -> Iterator[PullRequestReport]:
    """The pull request from CI's variables, overridden by settings and flags. page: the file of the complete report in the job's folder, ""
    for none. Raises `Invalid` or `Stalled` if something is missing."""
    about = kind_of(kind)
    job = about.job(os.environ)
    number = number or job.number
    if number is None:
        raise Invalid(
            "the pull request's number is not known",
            hint=f"name it with --pull-request; in the CI of a pull request {about.number_variable} has it",
        )
    # Where a file has no address among the job's artifacts, the job's page lists it.
    whole = f"{job.url}/{about.job_files}/{page}" if about.job_files else job.url
    refusal, from_fork = None, True
    with closing(forge_of(kind, settings, job)) as forge:
        try:
            from_fork = forge.pull_request(number).from_fork
        except Failure as failure:
            refusal = failure
        yield PullRequestReport(
            forge,
            number,
            settings,
            # A number from a flag may be another pull request's than the one that CI runs for.
            head_commit=job.head_commit if job.number in (None, number) else "",
            url=job.url,
            whole=whole if page and job.url else "",
            mode=mode,
            above=above,
            unchanged_too=unchanged_too,
            from_fork=from_fork,
            refusal=refusal,
        )


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


def complete_page(comparison: Comparison, cluster: ReportedCluster) -> str:
    """The report as an HTML page, from which nothing is left out."""
    return rendered_page("report.html.j2", _page(comparison, cluster))


def _page(comparison: Comparison, cluster: ReportedCluster, whole: str = "") -> ReportPage:
    return difference_page(
        comparison.change, cluster=cluster.name, snapshot=cluster.snapshot, timelines=comparison.timelines, whole=whole
    )


def is_too_little(change: Difference, above: float) -> bool:
    """Whether there is nothing to make a first comment for. Nothing may be lost, wrong or left unjudged. Besides, 30 days may cost at most
    `above` more or less; invented prices are below no bound."""
    if problems(change) or change.conflicts or change.unjudged or change.kept_as_before:
        return False
    if not change.has_changes:
        return True
    cost = change.cost
    return (
        cost is not None
        and not (sample_words(change.base, change.head) or any(cost.unpriced()))
        and abs(cost.delta) < above
    )


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


def _annotations(change: Difference, place: str | None) -> Iterator[Annotation]:
    """place: where the folder that was read is in the whole repository."""
    for finding in (each.below(place) for each in change.new_findings):
        if finding.position is not None:
            hint = f"\n{finding.hint}" if finding.hint else ""
            yield Annotation(
                finding.position.file,
                max(1, finding.position.line),
                finding.severity,
                finding.code,
                f"{finding.full_message}{hint}",
            )
