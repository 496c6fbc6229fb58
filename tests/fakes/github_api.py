"""What GitHub publishes of the endpoints that headroom uses, with a little state behind.

Read from GitHub's OpenAPI description of its REST API, version 2022-11-28, as of October 2026. It tells some limits in
words alone (of annotations), and two not at all: 65,536 characters of a comment and 140 of a status' description. Parameters that headroom
never sends are left out, and so refused.
"""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.forge_server import Endpoint, ForgeState

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
_ANNOTATION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["path", "start_line", "end_line", "annotation_level", "message"],
    "properties": {
        "path": TEXT,
        "start_line": {"type": "integer", "minimum": 1},
        "end_line": {"type": "integer", "minimum": 1},
        "annotation_level": {"enum": ["notice", "warning", "failure"]},
        "message": {"type": "string", "maxLength": 65536},
        "title": {"type": "string", "maxLength": 255},
    },
}
_OUTPUT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary"],
    "properties": {
        "title": TEXT,
        "summary": {"type": "string", "maxLength": 65535},
        "annotations": {"type": "array", "maxItems": 50, "items": _ANNOTATION},
    },
}
_CONCLUSIONS = ["action_required", "cancelled", "failure", "neutral", "success", "skipped", "stale", "timed_out"]
_CHECK = {
    "name": TEXT,
    "details_url": TEXT,
    "conclusion": {"enum": _CONCLUSIONS},
}
_NEW_CHECK = {
    "required": ["name", "head_sha"],
    "properties": {
        **_CHECK,
        "head_sha": {"type": "string", "pattern": "^[0-9a-f]{40}$"},
        "status": {"enum": ["queued", "in_progress", "completed", "waiting", "requested", "pending"]},
        "output": {**_OUTPUT, "required": ["title", "summary"]},
    },
    "if": {"properties": {"status": {"const": "completed"}}, "required": ["status"]},
    "then": {"required": ["conclusion"]},
}
_MORE_OF_A_CHECK = {
    "properties": {**_CHECK, "status": {"enum": ["queued", "in_progress", "completed"]}, "output": _OUTPUT},
    "if": {"properties": {"status": {"const": "completed"}}, "required": ["status"]},
    "then": {"required": ["conclusion"]},
}
_PULL = {"title": TEXT, "body": TEXT, "base": TEXT}
_NEW_PULL = {"required": ["head", "base", "title"], "properties": {**_PULL, "head": TEXT}}
_LISTED = {
    "state": {"enum": ["open", "closed", "all"]},
    "head": {"type": "string", "pattern": "^[^:]+:.+$"},
    "base": TEXT,
    "sort": {"enum": ["created", "updated", "popularity", "long-running"]},
    "direction": {"enum": ["asc", "desc"]},
    **_PER_PAGE,
}
_REPOSITORY = "/repos/example/capacity"


class GitHubState(ForgeState):
    """login "" is a workflow's token, which may not ask who it is; checks: whether it may make check runs."""

    def __init__(self) -> None:
        super().__init__(pull(7, "more"), pull(8, "theirs", owner="stranger"))
        self.login = "headroom-bot"
        self.checks = True
        self.runs: list[list[dict[str, Any]]] = []
        self.minimized: list[str] = []

    def author(self) -> dict[str, str]:
        return {"login": self.login, "type": "User"} if self.login else {"login": "github-actions[bot]", "type": "Bot"}

    def marks_of_a_comment(self, number: int) -> dict[str, Any]:
        return {"node_id": f"IC_{number}", "user": self.author()}

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/user", lambda _m, _b: (200, self.author()) if self.login else (403, {"message": "no"})),
            Endpoint("GET", f"{_REPOSITORY}/pulls/(\\d+)", self.pull),
            Endpoint("GET", f"{_REPOSITORY}/pulls", lambda _m, _b: (200, self.pulls), query={"properties": _LISTED}),
            Endpoint("POST", f"{_REPOSITORY}/pulls", self._open, body=_NEW_PULL),
            Endpoint(
                "PATCH",
                f"{_REPOSITORY}/pulls/(\\d+)",
                self.pull,
                body={"properties": {**_PULL, "state": {"enum": ["open", "closed"]}}},
            ),
            Endpoint(
                "GET",
                f"{_REPOSITORY}/issues/7/comments",
                lambda _m, _b: (200, self.comments),
                query={"properties": _PER_PAGE},
            ),
            Endpoint("POST", f"{_REPOSITORY}/issues/7/comments", self.comment, body=_COMMENT),
            Endpoint("PATCH", f"{_REPOSITORY}/issues/comments/(\\d+)", self.edit, body=_COMMENT),
            Endpoint("DELETE", f"{_REPOSITORY}/issues/comments/(\\d+)", self.delete),
            Endpoint("POST", f"{_REPOSITORY}/statuses/[0-9a-f]{{40}}", self.status, body=_STATUS),
            Endpoint("POST", f"{_REPOSITORY}/check-runs", self._run, body=_NEW_CHECK),
            Endpoint("PATCH", f"{_REPOSITORY}/check-runs/1", self._run, body=_MORE_OF_A_CHECK),
            Endpoint(
                "POST",
                "(/api)?/graphql",
                self._minimize,
                body={
                    "required": ["query"],
                    "properties": {
                        "query": {"type": "string", "pattern": "minimizeComment.*classifier: OUTDATED"},
                        "variables": {"type": "object", "required": ["id"]},
                    },
                },
            ),
        ]

    def _open(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        self.pulls.append({**pull(9, body["head"]), "title": body["title"], "body": body["body"]})
        return 201, self.pulls[-1]

    def _run(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        if not self.checks:
            return 403, {"message": "You must authenticate via a GitHub App."}
        self.runs.append(body["output"]["annotations"])
        return 201, {"id": 1}

    def _minimize(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        self.minimized.append(body["variables"]["id"])
        return 200, {"data": {}}


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
