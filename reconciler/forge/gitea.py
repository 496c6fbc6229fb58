"""Gitea and Forgejo: pull requests, comments and statuses over their REST API, which has no annotations of lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from reconciler.forge.client import ForgeClient
from reconciler.forge.connection import ForgeConnection
from reconciler.forge.kind import ForgeKind, Webhooks, actions_event, actions_job
from reconciler.ports import CommitState, PullRequest

_PAGE = "limit"


class Gitea(ForgeClient):
    """repository: `OWNER/NAME`. api: `https://HOST/api/v1`."""

    name = "Gitea"
    states: ClassVar[Mapping[CommitState, str]] = {CommitState.NEUTRAL: "warning"}

    def __init__(self, repository: str, token: str, *, api: str, wait: Callable[[float], None] = time.sleep) -> None:
        super().__init__(f"/repos/{quote(repository)}", ForgeConnection(self.name, api, f"token {token}", wait=wait))

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        listed = self._connection.pages(self._pulls, {"state": "open", "sort": "oldest"}, size=_PAGE)
        return tuple(sorted((self._read(each) for each in listed), key=lambda pull: pull.number))

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        """Gitea cannot list by branch, so all are read, the newest first. A branch that was deleted is named by `label` alone."""
        listed = self._connection.pages(self._pulls, {"state": "all"}, size=_PAGE)
        pulls = [self._read(each) for each in listed if each["head"].get("label") == branch]
        return tuple(sorted((pull for pull in pulls if not pull.from_fork), key=lambda pull: -pull.number))

    def _listed_comments(self, number: int) -> Iterable[dict[str, Any]]:
        # This list has no pages.
        listed = self._connection.get(self._comments_of(number)) or []
        return sorted(listed, key=lambda each: int(each["id"]))

    def _is_own(self, comment: dict[str, Any]) -> bool:
        return bool((comment.get("user") or {}).get("login") == self._account["login"])

    def _is_from_fork(self, head: dict[str, Any], base: dict[str, Any]) -> bool:
        return bool(head.get("repo_id") != base.get("repo_id"))


KIND = ForgeKind(
    open=lambda repository, token, api: Gitea(repository, token, api=api),
    hosts=("gitea", "forgejo", "codeberg"),
    tokens=("GITEA_TOKEN", "GITHUB_TOKEN"),  # a job of Gitea Actions has both.
    # The address of a run has its number in the repository; the run's identity is another number.
    job=partial(actions_job, run="GITHUB_RUN_NUMBER"),
    number_variable="GITHUB_EVENT_PATH or GITHUB_REF",
    repository_variable="GITHUB_REPOSITORY",
    webhooks=Webhooks("x-gitea-event", "x-gitea-signature", lambda _, digest: digest, actions_event),
    ci_file=".gitea/workflows/headroom.yaml",
    api_words="https://HOST/api/v1; in CI GITHUB_API_URL has it",
    file_page="src/commit",
)
