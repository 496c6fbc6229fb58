"""GitHub: pull requests, comments and statuses over its REST API."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from reconciler.forge.connection import ForgeConnection, GoneError
from reconciler.forge.kind import ForgeKind, Webhooks, actions_event, actions_job
from reconciler.model.errors import Stalled
from reconciler.ports import Comment, CommitState, CommitStatus, PullRequest


class GitHubLike(ABC):
    """repository: `OWNER/NAME`. connection: closed with the forge."""

    longest_description: ClassVar[int | None] = None
    """The longest description of a status in characters; None for no limit."""
    neutral_state: ClassVar[str] = "warning"
    """The state of a status that is neither good nor bad."""

    def __init__(self, repository: str, connection: ForgeConnection) -> None:
        self._root = f"/repos/{quote(repository)}"
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    def pull_request(self, number: int) -> PullRequest:
        return self._pull_request(self._connection.get(f"{self._root}/pulls/{number}"))

    def add_comment(self, number: int, body: str) -> Comment:
        made = self._connection.send("POST", f"{self._root}/issues/{number}/comments", {"body": body})
        return Comment(str(made["id"]), body)

    def edit_comment(self, number: int, comment: Comment, body: str) -> None:
        del number  # comment numbers are unique in the repository
        self._connection.send("PATCH", f"{self._root}/issues/comments/{comment.identity}", {"body": body})

    def delete_comment(self, number: int, comment: Comment) -> None:
        del number
        try:
            self._connection.send("DELETE", f"{self._root}/issues/comments/{comment.identity}")
        except GoneError:
            return

    def set_status(self, commit: str, status: CommitStatus) -> None:
        request = {
            "state": self.neutral_state if status.state is CommitState.NEUTRAL else status.state.value,
            "context": status.context,
            "description": status.description[: self.longest_description],
        }
        if status.url:
            request["target_url"] = status.url
        self._connection.send("POST", f"{self._root}/statuses/{commit}", request)

    def _pull_request(self, document: dict[str, Any]) -> PullRequest:
        head, base = document["head"], document["base"]
        number = int(document["number"])
        return PullRequest(
            number=number,
            head_commit=head["sha"],
            head_branch=head["ref"],
            head_ref=f"refs/pull/{number}/head",
            base_branch=base["ref"],
            from_fork=self._is_from_fork(head, base),
        )

    @abstractmethod
    def _is_from_fork(self, head: dict[str, Any], base: dict[str, Any]) -> bool:
        """Whether the two sides are from different repositories."""


PUBLIC_API = "https://api.github.com"


class GitHub(GitHubLike):
    """repository: `OWNER/NAME`. api: GitHub Enterprise's, `https://HOST/api/v3`."""

    longest_description = 140
    neutral_state = "pending"

    def __init__(
        self, repository: str, token: str, *, api: str = PUBLIC_API, wait: Callable[[float], None] = time.sleep
    ) -> None:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        root = (api or PUBLIC_API).rstrip("/")
        super().__init__(repository, ForgeConnection(self.name, root, f"Bearer {token}", headers=headers, wait=wait))

        self._login = ""
        self._login_known = False

    @property
    def name(self) -> str:
        return "GitHub"

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        listed = self._connection.pages(f"{self._root}/pulls", {"state": "open", "sort": "created", "direction": "asc"})
        return tuple(self._pull_request(each) for each in listed)

    def comments(self, number: int) -> tuple[Comment, ...]:
        listed = self._connection.pages(f"{self._root}/issues/{number}/comments")
        return tuple(
            Comment(str(each["id"]), each.get("body") or "") for each in listed if self._is_own(each.get("user") or {})
        )

    def _is_from_fork(self, head: dict[str, Any], base: dict[str, Any]) -> bool:
        """Whether it is from a fork. A deleted fork has no repository any more."""
        return (head.get("repo") or {}).get("full_name") != (base.get("repo") or {}).get("full_name")

    def _is_own(self, author: dict[str, Any]) -> bool:
        """Whether this account is the author. A workflow's token, like any app's, cannot ask who it is; then every app counts."""
        if not self._login_known:
            try:
                self._login = str(self._connection.get("/user")["login"])
            except (GoneError, Stalled):
                self._login = ""
            self._login_known = True
        return author.get("login") == self._login if self._login else author.get("type") == "Bot"


KIND = ForgeKind(
    open=lambda repository, token, api: GitHub(repository, token, api=api),
    hosts=("github",),
    tokens=("GITHUB_TOKEN", "GH_TOKEN"),
    job=partial(actions_job, run="GITHUB_RUN_ID"),
    number_variable="GITHUB_EVENT_PATH or GITHUB_REF",
    repository_variable="GITHUB_REPOSITORY",
    webhooks=Webhooks("x-github-event", "x-hub-signature-256", lambda _, digest: f"sha256={digest}", actions_event),
    ci_file=".github/workflows/headroom.yaml",
)
