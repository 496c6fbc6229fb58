"""What the daemon does on the forge: reports on pull requests, proposals, and webhooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from time import monotonic

from reconciler.clocks import FixedClock
from reconciler.comparison import Comparison, compare
from reconciler.daemon.background import Reviews
from reconciler.daemon.daemon import Daemon
from reconciler.files import read_secret
from reconciler.forge import FORGES
from reconciler.forge.forges import check_forge
from reconciler.forge.pull_requests import Proposal, is_declined, keep_open, withdraw
from reconciler.model.errors import Failure, Invalid, Transient, Waiting
from reconciler.model.rules import UNCAPPED
from reconciler.ports import Clock, Cluster, Forge, Proposals, ProposedPlan, PullRequest, Source
from reconciler.report.plan.page import plan_page
from reconciler.report.words import short_revision
from reconciler.settings.settings import Settings
from reconciler.source.state import LatestTree
from reconciler.telemetry.logs import logger
from reconciler.web.pages import HTML, Page, Response
from reconciler.web.server import PATH, WebhookServer
from reconciler.wiring.inputs import git_options, open_catalog, reported_cluster, scope_of
from reconciler.wiring.posting import PullRequestReport, complete_page, forge_of, rendered_page
from reconciler.wiring.session import make_cycle


def _check(settings: Settings, what: str) -> None:
    """Raises `Invalid` if a setting is missing that this one needs. The token may come later, since it is read again each time."""
    from reconciler.source.opening import is_remote

    if not settings.forge.kind:
        raise Invalid(f"{what} needs a forge", hint=f"set forge.kind to one of {', '.join(FORGES)}")
    if not is_remote(settings.repository):
        raise Invalid(f"{what} needs a repository on a forge", hint="set repository to its URL")
    chosen = settings.forge
    check_forge(chosen.kind, repository=chosen.repository, api=chosen.api, plain_http=settings.git.plain_http)


class Reporter:
    """The functions that `Reviews` calls. source: gives the repository's newest tree without waiting. pages: by path, all of the report
    on each open pull request. Raises `Invalid` if a setting is missing."""

    def __init__(self, settings: Settings, source: Source, cluster: Cluster, clock: Clock) -> None:
        from reconciler.source.merging import PullRequestTrees

        _check(settings, "forge.reports")
        self._settings = settings
        self._source = source
        self._cluster = cluster
        self._clock = clock
        self.pages: dict[str, Page] = {}
        self._trees = PullRequestTrees(settings.repository, scope_of(settings), git_options(settings))

    def base(self) -> str | None:
        try:
            return self._source.read().revision
        except Failure:
            return None  # the poll reports it

    def pull_requests(self) -> list[PullRequest]:
        branch = (self.base() or "").partition("@")[0]
        with _opened(self._settings) as forge:
            pulls = [pull for pull in forge.open_pull_requests() if pull.base_branch == branch]
        for path in self.pages.keys() - {_page_of(pull) for pull in pulls}:
            del self.pages[path]
        return pulls

    def report(self, pull: PullRequest) -> str:
        path, place = _page_of(pull), self._settings.forge.pages.rstrip("/")
        whole = f"{place}{path}" if place else ""
        with _opened(self._settings) as forge:
            report = PullRequestReport(forge, pull.number, self._settings, above=self._settings.forge.reports_above)
            try:
                comparison = self._comparison(pull, self._clock.now())
            except Failure as failure:
                if not isinstance(failure, Transient | Waiting):
                    replace(report, head_commit=pull.head_commit).failed(failure)
                raise
            cluster = reported_cluster(self._cluster, self._settings)
            page = Response(complete_page(comparison, cluster).encode(), HTML)
            self.pages[path] = lambda: page
            published = replace(report, url=whole, whole=whole).post(comparison, cluster, place=".")
        if published.failure is not None:
            raise published.failure
        return "" if published.comment is None else published.comment.value

    def _comparison(self, pull: PullRequest, now: datetime) -> Comparison:
        sides = self._trees.sides(pull)
        # A cycle for each pull request, since the last good versions of one must not count for another.
        cycle = make_cycle(
            replace(self._settings, caps=UNCAPPED),
            source=self._source,
            cluster=self._cluster,
            catalog=open_catalog(self._settings, self._cluster, self._clock),
            clock=FixedClock(now),
        )
        return compare(cycle, sides, caps=self._settings.caps, foreign=pull.from_fork)


def _page_of(pull: PullRequest) -> str:
    return f"/pulls/{pull.number}"


def _opened(settings: Settings) -> closing[Forge]:
    """A forge for one look: the token's file may have changed since the last one."""
    return closing(forge_of(settings.forge.kind, settings))


def proposals_of(settings: Settings, cluster: str) -> Proposals | None:
    """The proposals; None if plans are written to the cluster. Raises `Invalid` if a setting is missing."""
    if not settings.proposal.branch:
        return None
    _check(settings, "proposal.branch")
    return PullRequestProposals(settings, cluster)


class PullRequestProposals:
    """Asks the forge only when the documents differ from the last time, or after `forge.interval`."""

    def __init__(self, settings: Settings, cluster: str) -> None:
        self._settings = settings
        self._cluster = cluster
        self._last: tuple[object, float] | None = None

    def propose(self, rendered: Mapping[str, str], *, keep: Callable[[str], bool], state: ProposedPlan) -> None:
        content = (dict(rendered), state.revision)
        if self._last is not None and self._last[0] == content and monotonic() < self._last[1]:
            return
        self._check(state.revision)
        self._propose(rendered, keep, state)
        self._last = (content, monotonic() + self._settings.forge.interval.total_seconds())

    def _propose(self, rendered: Mapping[str, str], keep: Callable[[str], bool], state: ProposedPlan) -> None:
        from reconciler.source.branches import Folder, WrittenBranch

        settings = self._settings.proposal
        where = self._settings.path.strip("/") or self._cluster
        title = f"Capacity of {where}, rendered from {short_revision(state.revision)}"
        page = plan_page(state.plan, cluster=self._cluster)
        body = rendered_page("report.md.j2", replace(page, notes=[*state.waiting, *page.notes]))
        proposal = Proposal(settings.branch, settings.base, title, body)
        branch = WrittenBranch(self._settings.repository, settings.branch, git_options(self._settings))
        with _opened(self._settings) as forge:
            if is_declined(forge, proposal):
                return
            source = state.revision.partition("@sha1:")[2]
            message = f"{title}\n\nHeadroom-Source: {source}"
            folder = Folder(settings.folder, rendered, keep)
            gone = partial(withdraw, forge, settings.branch, settings.base)
            written = branch.write(folder, base=settings.base, message=message, withdraw=gone)
            if written is None:
                return
            number = keep_open(forge, proposal, changed=written)
            if written:
                logger().info("proposed", pull=number, branch=settings.branch, revision=state.revision)

    def _check(self, revision: str) -> None:
        """Raises if headroom would read what it writes here, since it would then propose its own proposals."""
        settings, path = self._settings.proposal, self._settings.path.strip("/")
        inside = not path or f"{settings.folder.strip('/')}/".startswith(f"{path}/")
        if inside and settings.base == revision.partition("@")[0]:
            raise Invalid(
                f"proposal.folder {settings.folder!r} is among the manifests that are read",
                hint="set path to the manifests' folder, or proposal.base to another branch",
            )


SECRET_VARIABLE = "HEADROOM_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True)
class Announced:
    """The functions that webhooks and people trigger; each returns at once."""

    source: LatestTree
    daemon: Daemon
    reviews: Reviews | None

    def push(self) -> None:
        self.source.hasten()
        self.daemon.poll_now()

    def request(self, requested_at: str) -> None:
        """A person asks for a pass."""
        self.source.hasten()
        self.daemon.request(requested_at)

    def pull_request(self) -> None:
        if self.reviews is not None:
            self.reviews.wake()


def receive_webhooks(
    settings: Settings, clusters: Sequence[tuple[Settings, Announced]], count: Callable[[str], None], stack: ExitStack
) -> None:
    """Receives webhooks until the stack is left, if the settings name an address. Raises `Invalid` without a secret.

    clusters: what is told of a push to the branch that its settings name.
    """
    from reconciler.forge.forges import UnsignedError, read_webhook

    if not settings.webhooks.listen:
        return
    _secret(settings)

    def take(headers: Mapping[str, str], body: bytes) -> int:
        try:
            event = read_webhook(headers, body, _secret(settings))
        except UnsignedError:
            count("unsigned")
            return 401
        except Failure:
            count("invalid")
            return 400
        if event is None:
            count("ignored")
            return 200
        count("taken")
        for own, announced in clusters:
            if event.pushed is not None and own.revision in {"", event.pushed}:
                announced.push()
            announced.pull_request()
        return 202

    receiver = WebhookServer(settings.webhooks.listen, take)
    stack.callback(receiver.close)
    receiver.start()
    logger().info("receives webhooks", at=f"http://{receiver.address}{PATH}")


def _secret(settings: Settings) -> str:
    """The secret, read again for each webhook. An empty one is refused, since anybody could sign with it."""
    hooks = settings.webhooks
    secret = read_secret(hooks.secret_file, (SECRET_VARIABLE,), what="secret", setting="webhooks.secretFile")
    if not secret:
        raise Invalid(
            "webhooks are received only with a secret that they are signed with",
            hint=f"set {SECRET_VARIABLE} or webhooks.secretFile to what the forge was given",
        )
    return secret
