"""What GitHub publishes of the endpoints that headroom uses, with a little state behind.

Read from GitHub's OpenAPI description of its REST API, version 2022-11-28, as of October 2026. It does not tell
two limits: 65,536 characters of a comment and 140 of a status' description.
"""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.forge_server import Endpoint, ForgeServer

TEXT = {"type": "string"}
_PER_PAGE = {"per_page": {"type": "string", "pattern": "^([1-9][0-9]?|100)$"}}
_COMMENT = {"required": ["body"], "properties": {"body": {"type": "string", "minLength": 1, "maxLength": 65536}}}
_STATUS = {
    "required": ["state"],
    "properties": {
        "state": {"enum": ["error", "failure", "pending", "success"]},
        "target_url": {"type": ["string", "null"], "format": "uri", "pattern": "^https?://"},
        "description": {"type": ["string", "null"], "maxLength": 140},
        "context": TEXT,
    },
}
_LISTED = {
    "state": {"enum": ["open", "closed", "all"]},
    "head": {"type": "string", "pattern": "^[^:]+:.+$"},
    "base": TEXT,
    "sort": {"enum": ["created", "updated", "popularity", "long-running"]},
    "direction": {"enum": ["asc", "desc"]},
    **_PER_PAGE,
}
_REPOSITORY = "/repos/example/capacity"


class GitHubState:
    """comments: of pull request 7; login "" is a workflow's token, which may not ask who it is."""

    def __init__(self) -> None:
        self.login = "headroom-bot"
        self.comments: list[dict[str, Any]] = []
        self.pulls: list[dict[str, Any]] = [pull(7, "more"), pull(8, "theirs", owner="stranger")]
        self.statuses: list[dict[str, Any]] = []

    def author(self) -> dict[str, str]:
        return {"login": self.login, "type": "User"} if self.login else {"login": "github-actions[bot]", "type": "Bot"}

    def endpoints(self, _server: ForgeServer) -> list[Endpoint]:
        return [
            Endpoint("GET", "/user", lambda _m, _b: (200, self.author()) if self.login else (403, {"message": "no"})),
            Endpoint("GET", f"{_REPOSITORY}/pulls/(\\d+)", self._pull),
            Endpoint("GET", f"{_REPOSITORY}/pulls", lambda _m, _b: (200, self.pulls), query={"properties": _LISTED}),
            Endpoint(
                "GET",
                f"{_REPOSITORY}/issues/7/comments",
                lambda _m, _b: (200, self.comments),
                query={"properties": {"since": {"type": "string", "format": "date-time"}, **_PER_PAGE}},
            ),
            Endpoint("POST", f"{_REPOSITORY}/issues/7/comments", self._comment, body=_COMMENT),
            Endpoint("PATCH", f"{_REPOSITORY}/issues/comments/(\\d+)", self._edit, body=_COMMENT),
            Endpoint("DELETE", f"{_REPOSITORY}/issues/comments/(\\d+)", self._delete),
            Endpoint("POST", f"{_REPOSITORY}/statuses/[0-9a-f]{{40}}", self._status, body=_STATUS),
        ]

    def _pull(self, found: re.Match[str], _body: Any) -> tuple[int, Any]:
        pulls = [each for each in self.pulls if each["number"] == int(found[1])]
        return (200, pulls[0]) if pulls else (404, {"message": "Not Found"})

    def _comment(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        number = len(self.comments) + 1
        self.comments.append({"id": number, "body": body["body"], "user": self.author()})
        return 201, self.comments[-1]

    def _edit(self, found: re.Match[str], body: Any) -> tuple[int, Any]:
        comments = [each for each in self.comments if each["id"] == int(found[1])]
        if not comments:
            return 404, {"message": "Not Found"}
        comments[0]["body"] = body["body"]
        return 200, comments[0]

    def _delete(self, found: re.Match[str], _body: Any) -> tuple[int, Any]:
        kept = [each for each in self.comments if each["id"] != int(found[1])]
        gone = len(kept) < len(self.comments)
        self.comments = kept
        return (204, None) if gone else (404, {"message": "Not Found"})

    def _status(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        self.statuses.append(body)
        return 201, body


def pull(number: int, branch: str, *, owner: str = "example") -> dict[str, Any]:
    """As GitHub shows one, as far as headroom reads it."""
    return {
        "number": number,
        "title": f"Change from {branch}",
        "state": "open",
        "body": None,
        "html_url": f"https://github.com/example/capacity/pull/{number}",
        "head": {"ref": branch, "sha": f"{number:040x}", "repo": {"full_name": f"{owner}/capacity"}},
        "base": {"ref": "main", "sha": "f" * 40, "repo": {"full_name": "example/capacity"}},
    }
