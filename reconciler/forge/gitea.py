"""Gitea and Forgejo: pull requests, comments and statuses over their REST API. It has no remarks beside lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from reconciler.forge.connection import Connection, GoneError
from reconciler.forge.folded import folded
from reconciler.model.pull_requests import Annotation, Comment, CommitStatus, PullRequest

_PAGE = "limit"


class Gitea:
    """repository: `OWNER/NAME`; api: `https://HOST/api/v1`."""

    def __init__(self, repository: str, token: str, *, api: str, wait: Callable[[float], None] = time.sleep) -> None:
        self._root = f"/repos/{quote(repository)}"
        self._connection = Connection(self.name, api, f"token {token}", wait=wait)
        self._login: str | None = None

    @property
    def name(self) -> str:
        return "Gitea"

    def close(self) -> None:
        self._connection.close()

    def pull_request(self, number: int) -> PullRequest:
        return _pull_request(self._connection.get(f"{self._root}/pulls/{number}"))

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        listed = self._connection.pages(f"{self._root}/pulls", {"state": "open", "sort": "oldest"}, size=_PAGE)
        return tuple(sorted((_pull_request(each) for each in listed), key=lambda pull: pull.number))

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        """Gitea lists by no branch of its own accord: all are read, the newest first, and few repositories have many."""
        listed = self._connection.pages(f"{self._root}/pulls", {"state": "all"}, size=_PAGE)
        found = [_pull_request(each) for each in listed if each["head"].get("ref") == branch]
        return tuple(sorted((pull for pull in found if not pull.from_fork), key=lambda pull: -pull.number))

    def open_pull_request(self, *, title: str, body: str, head: str, base: str) -> PullRequest:
        request = {"title": title, "body": body, "head": head, "base": base}
        return _pull_request(self._connection.send("POST", f"{self._root}/pulls", request))

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        self._connection.send("PATCH", f"{self._root}/pulls/{number}", {"title": title, "body": body})

    def close_pull_request(self, number: int) -> None:
        self._connection.send("PATCH", f"{self._root}/pulls/{number}", {"state": "closed"})

    def comments(self, number: int) -> tuple[Comment, ...]:
        # This list comes whole, without pages.
        listed = self._connection.get(f"{self._root}/issues/{number}/comments") or []
        login = self._own_login()
        return tuple(
            Comment(str(each["id"]), each.get("body") or "")
            for each in sorted(listed, key=lambda each: int(each["id"]))
            if (each.get("user") or {}).get("login") == login
        )

    def add_comment(self, number: int, body: str) -> Comment:
        made = self._connection.send("POST", f"{self._root}/issues/{number}/comments", {"body": body})
        return Comment(str(made["id"]), body)

    def edit_comment(self, number: int, comment: Comment, body: str) -> None:
        del number  # comments are numbered through the repository
        self._connection.send("PATCH", f"{self._root}/issues/comments/{comment.identity}", {"body": body})

    def hide_comment(self, number: int, comment: Comment) -> None:
        self.edit_comment(number, comment, folded(comment.body))

    def delete_comment(self, number: int, comment: Comment) -> None:
        del number
        try:
            self._connection.send("DELETE", f"{self._root}/issues/comments/{comment.identity}")
        except GoneError:
            return

    def set_status(self, commit: str, status: CommitStatus) -> None:
        request = {"state": status.state.value, "context": status.context, "description": status.description}
        if status.url:
            request["target_url"] = status.url
        self._connection.send("POST", f"{self._root}/statuses/{commit}", request)

    def annotate(self, commit: str, status: CommitStatus, summary: str, annotations: Sequence[Annotation]) -> bool:
        del commit, status, summary, annotations
        return False

    def _own_login(self) -> str:
        if self._login is None:
            self._login = str(self._connection.get("/user")["login"])
        return self._login


def _pull_request(document: dict[str, Any]) -> PullRequest:
    head, base = document["head"], document["base"]
    number = int(document["number"])
    return PullRequest(
        number=number,
        title=document["title"],
        head_commit=head["sha"],
        head_branch=head["ref"],
        head_ref=f"refs/pull/{number}/head",
        base_branch=base["ref"],
        from_fork=head.get("repo_id") != base.get("repo_id"),
        is_open=document["state"] == "open",
        merged=bool(document.get("merged")),
        body=document.get("body") or "",
        url=document.get("html_url", ""),
    )
