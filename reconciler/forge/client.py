"""What the clients of all forges do alike. A forge says in its own file where things are in its API, and what it calls them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from reconciler.forge.connection import ForgeConnection, GoneError
from reconciler.ports import Annotation, Comment, CommitState, CommitStatus, PullRequest

_FOLDED = "<details><summary>An earlier report, outdated</summary>"


class ForgeClient(ABC):
    """root: the repository's part of the API. connection: closed with the forge."""

    name: ClassVar[str]
    pulls: ClassVar[str] = "pulls"
    """Where pull requests are, below the root."""
    change: ClassVar[str] = "PATCH"
    """The method that changes what is there."""
    closing: ClassVar[Mapping[str, str]] = {"state": "closed"}
    """The change that closes a pull request."""
    body: ClassVar[str] = "body"
    """The fields of a pull request with its text, its branch and the branch that it is merged into; and of a status with its name."""
    head: ClassVar[str] = "head"
    base: ClassVar[str] = "base"
    context: ClassVar[str] = "context"
    states: ClassVar[Mapping[CommitState, str]] = {}
    """What it calls the states of a commit, where that is another word."""
    longest_description: ClassVar[int | None] = None
    """The longest description of a status in characters; None for no limit."""

    def __init__(self, root: str, connection: ForgeConnection) -> None:
        self._root = root
        self._pulls = f"{root}/{self.pulls}"
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    @cached_property
    def _account(self) -> dict[str, Any]:
        """The account that the token is of."""
        account: dict[str, Any] = self._connection.get("/user")
        return account

    def pull_request(self, number: int) -> PullRequest:
        return self._read(self._connection.get(f"{self._pulls}/{number}"))

    def open_pull_request(self, *, title: str, body: str, head: str, base: str) -> PullRequest:
        request = {"title": title, self.body: body, self.head: head, self.base: base}
        return self._read(self._connection.send("POST", self._pulls, request))

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        self._connection.send(self.change, f"{self._pulls}/{number}", {"title": title, self.body: body})

    def close_pull_request(self, number: int, *, title: str) -> None:
        self._connection.send(self.change, f"{self._pulls}/{number}", {"title": title, **self.closing})

    def comments(self, number: int) -> tuple[Comment, ...]:
        return tuple(
            Comment(str(each["id"]), each.get("body") or "", each.get("node_id", ""))
            for each in self._listed_comments(number)
            if self._is_own(each)
        )

    def add_comment(self, number: int, body: str) -> None:
        self._connection.send("POST", self._comments_of(number), {"body": body})

    def edit_comment(self, number: int, comment: Comment, body: str) -> None:
        self._connection.send(self.change, self._place_of(number, comment), {"body": body})

    def hide_comment(self, number: int, comment: Comment) -> None:
        """Collapses it under a line that says so."""
        self.edit_comment(number, comment, f"{_FOLDED}\n\n{comment.body}\n\n</details>\n")

    def delete_comment(self, number: int, comment: Comment) -> None:
        try:
            self._connection.send("DELETE", self._place_of(number, comment))
        except GoneError:
            return

    def set_status(self, commit: str, status: CommitStatus) -> None:
        request = {
            "state": self.states.get(status.state, status.state.value),
            self.context: status.context,
            "description": status.description[: self.longest_description],
        }
        if status.url:
            request["target_url"] = status.url
        self._post_status(f"{self._root}/statuses/{commit}", request)

    def annotate(self, commit: str, status: CommitStatus, summary: str, annotations: Sequence[Annotation]) -> bool:
        """False: it has no annotations of lines."""
        del commit, status, summary, annotations
        return False

    def _post_status(self, path: str, request: Mapping[str, Any]) -> None:
        self._connection.send("POST", path, request)

    def _comments_of(self, number: int) -> str:
        return f"{self._root}/issues/{number}/comments"

    def _place_of(self, number: int, comment: Comment) -> str:
        """A comment's place. Its number is unique in the repository."""
        del number
        return f"{self._root}/issues/comments/{comment.identity}"

    def _read(self, document: dict[str, Any]) -> PullRequest:
        """A pull request, as the forge shows it, also in a list."""
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
            merged=bool(document.get("merged") or document.get("merged_at")),  # in a list GitHub has only the time
        )

    def _is_from_fork(self, head: dict[str, Any], base: dict[str, Any]) -> bool:
        """Whether the two sides are from different repositories. A deleted fork has none any more."""
        return (head.get("repo") or {}).get("full_name") != (base.get("repo") or {}).get("full_name")

    @abstractmethod
    def _listed_comments(self, number: int) -> Iterable[dict[str, Any]]:
        """All comments, the oldest first."""

    @abstractmethod
    def _is_own(self, comment: dict[str, Any]) -> bool:
        """Whether this account has written it."""
