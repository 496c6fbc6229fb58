"""The part of GitHub's REST API that Gitea shares: pull requests, comments and statuses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar
from urllib.parse import quote

from reconciler.forge.connection import ForgeConnection, GoneError
from reconciler.model.source import Comment, CommitState, CommitStatus, PullRequest


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

    def open_pull_request(self, *, title: str, body: str, head: str, base: str) -> PullRequest:
        request = {"title": title, "body": body, "head": head, "base": base}
        return self._pull_request(self._connection.send("POST", f"{self._root}/pulls", request))

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        self._connection.send("PATCH", f"{self._root}/pulls/{number}", {"title": title, "body": body})

    def close_pull_request(self, number: int) -> None:
        self._connection.send("PATCH", f"{self._root}/pulls/{number}", {"state": "closed"})

    def add_comment(self, number: int, body: str) -> Comment:
        made = self._connection.send("POST", f"{self._root}/issues/{number}/comments", {"body": body})
        return Comment(str(made["id"]), body, made.get("node_id", ""))

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
            title=document["title"],
            head_commit=head["sha"],
            head_branch=head["ref"],
            head_ref=f"refs/pull/{number}/head",
            base_branch=base["ref"],
            from_fork=self._is_from_fork(head, base),
            is_open=document["state"] == "open",
            merged=self._is_merged(document),
            body=document.get("body") or "",
            url=document.get("html_url", ""),
        )

    @abstractmethod
    def _is_from_fork(self, head: dict[str, Any], base: dict[str, Any]) -> bool:
        """Whether the two sides are from different repositories."""

    @abstractmethod
    def _is_merged(self, document: dict[str, Any]) -> bool:
        """Whether the pull request is merged. document: as the forge shows it, also in a list."""
