"""What GitLab publishes of the endpoints that headroom uses, with a little state behind.

Merge requests and commit statuses were read from GitLab's OpenAPI description (doc/api/openapi/openapi_v2.yaml at 0338625c of its
repository, 2026; statuses from postApiV4ProjectsIdStatusesSha as clients that are generated from it have it), notes and the parameters of lists from what the endpoints declare (lib/api/notes.rb and
lib/api/helpers/merge_requests_helpers.rb at 017a6c12, 2025). The bounds of the lengths are not in the description. Parameters that headroom never sends are left out, and so refused.
"""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.forge_server import Endpoint, ForgeState

TEXT = {"type": "string"}
_PER_PAGE = {"per_page": {"type": "string", "pattern": "^([1-9][0-9]?|100)$"}}
_BODY = {"type": "string", "minLength": 1, "maxLength": 1_000_000}
_NEW_NOTE = {"required": ["body"], "properties": {"body": _BODY}}
_CHANGED_NOTE = {"properties": {"body": _BODY}, "minProperties": 1}
_STATUS = {
    "required": ["state"],
    "properties": {
        "state": {"enum": ["pending", "running", "success", "failed", "canceled", "skipped"]},
        "name": TEXT,
        "context": TEXT,
        "description": {"type": "string", "maxLength": 255},
        "target_url": {"type": "string", "maxLength": 255},
    },
}
_MERGE_REQUEST = {
    "title": {"type": "string", "minLength": 1},
    "target_branch": {"type": "string", "minLength": 1},
    "description": {"type": "string", "maxLength": 1_048_576},
}
_NEW_MERGE_REQUEST = {
    "required": ["title", "source_branch", "target_branch"],
    "properties": {**_MERGE_REQUEST, "source_branch": TEXT},
}
_CHANGED_MERGE_REQUEST = {
    "properties": {**_MERGE_REQUEST, "state_event": {"enum": ["close", "reopen"]}},
    "minProperties": 1,
}
_SORT = {"sort": {"enum": ["asc", "desc"]}}
_NOTE_ORDER = {"order_by": {"enum": ["created_at", "updated_at"]}, **_SORT}
_PROJECT = "/projects/platform%2Fcapacity"
ME = 11


class GitLabState(ForgeState):
    """Its pull requests are merge requests, and its comments notes. unchanged: what the status would be set to is what it is already."""

    number = "iid"

    def __init__(self) -> None:
        super().__init__(merge_request(7, "more"), merge_request(8, "theirs", source=99))
        self.unchanged = False

    def marks_of_a_comment(self, number: int) -> dict[str, Any]:
        del number
        return {"system": False, "author": {"id": ME}}

    def endpoints(self) -> list[Endpoint]:
        listed = {
            "state": {"enum": ["opened", "closed", "locked", "merged", "all"]},
            "source_branch": TEXT,
            "target_branch": TEXT,
            "order_by": {"enum": ["created_at", "updated_at", "title", "priority", "merged_at"]},
            **_SORT,
        }
        notes = f"{_PROJECT}/merge_requests/7/notes"
        return [
            Endpoint("GET", "/user", lambda _m, _b: (200, {"id": ME, "username": "project_1_bot"})),
            Endpoint("GET", f"{_PROJECT}/merge_requests/(\\d+)", self.pull),
            Endpoint(
                "GET",
                f"{_PROJECT}/merge_requests",
                lambda _m, _b: (200, self.pulls),
                query={"properties": {**listed, **_PER_PAGE}},
            ),
            Endpoint("POST", f"{_PROJECT}/merge_requests", self._open, body=_NEW_MERGE_REQUEST),
            Endpoint("PUT", f"{_PROJECT}/merge_requests/(\\d+)", self.pull, body=_CHANGED_MERGE_REQUEST),
            Endpoint(
                "GET", notes, lambda _m, _b: (200, self.comments), query={"properties": {**_NOTE_ORDER, **_PER_PAGE}}
            ),
            Endpoint("POST", notes, self.comment, body=_NEW_NOTE),
            Endpoint("PUT", f"{notes}/(\\d+)", self.edit, body=_CHANGED_NOTE),
            Endpoint("DELETE", f"{notes}/(\\d+)", self.delete),
            Endpoint("POST", f"{_PROJECT}/statuses/[0-9a-f]{{40}}", self.status, body=_STATUS),
        ]

    def pull(self, found: re.Match[str], change: Any) -> tuple[int, Any]:
        fields = dict(change or {})
        if fields.pop("state_event", "") == "close":
            fields["state"] = "closed"
        return super().pull(found, fields)

    def _open(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        self.pulls.append({**merge_request(9, body["source_branch"]), **body})
        return 201, self.pulls[-1]

    def status(self, found: re.Match[str], body: Any) -> tuple[int, Any]:
        if self.unchanged:
            return 400, {"message": "Cannot transition status via :succeed from :success"}
        return super().status(found, body)


def merge_request(number: int, branch: str, *, source: int = 1) -> dict[str, Any]:
    """As GitLab shows one, as far as headroom reads it."""
    return {
        "iid": number,
        "title": f"Change from {branch}",
        "state": "opened",
        "description": "",
        "sha": f"{number:040x}",
        "source_branch": branch,
        "target_branch": "main",
        "source_project_id": source,
        "target_project_id": 1,
        "web_url": f"https://gitlab.com/platform/capacity/-/merge_requests/{number}",
    }
