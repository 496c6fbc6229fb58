"""Proposals as a branch of the repository and a pull request on its forge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

from reconciler.forge.proposal import Proposal, close, is_declined, keep_open
from reconciler.model.errors import Invalid
from reconciler.ports import Proposals, ProposedPlan
from reconciler.report.plan.page import plan_page
from reconciler.report.words import short_revision
from reconciler.settings.settings import Settings
from reconciler.telemetry.logs import logger
from reconciler.wiring.pages import rendered_page
from reconciler.wiring.posting import check_forge_of, forge_of
from reconciler.wiring.repository import git_options

_MOST_BODY = 60_000


def proposals_of(settings: Settings, cluster: str) -> Proposals | None:
    """The proposals; None if plans are written to the cluster. Raises `Invalid` if a setting is missing."""
    from reconciler.source.credentials import is_remote

    if not settings.proposal.branch:
        return None
    if not settings.forge.kind:
        raise Invalid("proposal.branch needs a forge", hint="set forge.kind to github, gitlab or gitea")
    if not is_remote(settings.repository):
        raise Invalid("proposal.branch needs a repository on a forge", hint="set repository to its URL")
    check_forge_of(settings)
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
        from reconciler.source.written_branch import Folder, WrittenBranch

        settings = self._settings.proposal
        where = self._settings.path.strip("/") or self._cluster
        title = f"Capacity of {where}, rendered from {short_revision(state.revision)}"
        page = plan_page(state.plan, cluster=self._cluster)
        page["notes"] = [*state.waiting, *page["notes"]]
        body = rendered_page("report.md.j2", page)[:_MOST_BODY]
        proposal = Proposal(settings.branch, settings.base, title, body)
        branch = WrittenBranch(self._settings.repository, settings.branch, git_options(self._settings))
        forge = forge_of(self._settings.forge.kind, self._settings)
        try:
            if is_declined(forge, proposal):
                return
            source = state.revision.partition("@sha1:")[2]
            message = f"{title}\n\nHeadroom-Source: {source}"
            written = branch.write(Folder(settings.folder, rendered, keep), base=settings.base, message=message)
            if written is None:
                close(forge, settings.branch, settings.base)
                return
            number = keep_open(forge, proposal, changed=written)
            if written:
                logger().info("proposed", pull=number, branch=settings.branch, revision=state.revision)
        finally:
            forge.close()

    def _check(self, revision: str) -> None:
        """Raises if headroom would read what it writes here, since it would then propose its own proposals."""
        settings, path = self._settings.proposal, self._settings.path.strip("/")
        inside = not path or f"{settings.folder.strip('/')}/".startswith(f"{path}/")
        if inside and settings.base == revision.partition("@")[0]:
            raise Invalid(
                f"proposal.folder {settings.folder!r} is among the manifests that are read",
                hint="set path to the manifests' folder, or proposal.base to another branch",
            )
