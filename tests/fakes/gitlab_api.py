"""What GitLab publishes of the endpoints that headroom uses, with a little state behind.

Merge requests and commit statuses were read from GitLab's OpenAPI description (doc/api/openapi/openapi_v2.yaml at 0338625c of its
repository, 2026; statuses from postApiV4ProjectsIdStatusesSha as clients that are generated from it have it), notes and the parameters of lists from what the endpoints declare (lib/api/notes.rb and
lib/api/helpers/merge_requests_helpers.rb at 017a6c12, 2025). The bounds of the lengths are not in the description. Parameters that headroom never sends are left out, and so refused.
"""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.forge_server import Endpoint, ForgeServer

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


class GitLabState:
    """notes: of merge request 7. unchanged: what the status would be set to is what it is already."""

    def __init__(self) -> None:
        self.notes: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = [merge_request(7, "more"), merge_request(8, "theirs", source=99)]
        self.statuses: list[dict[str, Any]] = []
        self.unchanged = False

    def endpoints(self, _server: ForgeServer) -> list[Endpoint]:
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
            Endpoint("GET", f"{_PROJECT}/merge_requests/(\\d+)", self._request),
            Endpoint(
                "GET",
                f"{_PROJECT}/merge_requests",
                lambda _m, _b: (200, self.requests),
                query={"properties": {**listed, **_PER_PAGE}},
            ),
            Endpoint("POST", f"{_PROJECT}/merge_requests", self._open, body=_NEW_MERGE_REQUEST),
            Endpoint("PUT", f"{_PROJECT}/merge_requests/(\\d+)", self._request, body=_CHANGED_MERGE_REQUEST),
            Endpoint(
                "GET", notes, lambda _m, _b: (200, self.notes), query={"properties": {**_NOTE_ORDER, **_PER_PAGE}}
            ),
            Endpoint("POST", notes, self._note, body=_NEW_NOTE),
            Endpoint("PUT", f"{notes}/(\\d+)", self._edit, body=_CHANGED_NOTE),
            Endpoint("DELETE", f"{notes}/(\\d+)", self._delete),
            Endpoint("POST", f"{_PROJECT}/statuses/[0-9a-f]{{40}}", self._status, body=_STATUS),
        ]

    def _request(self, found: re.Match[str], body: Any) -> tuple[int, Any]:
        requests = [each for each in self.requests if each["iid"] == int(found[1])]
        if not requests:
            return 404, {"message": "404 Not found"}
        if (body or {}).get("state_event") == "close":
            requests[0]["state"] = "closed"
        requests[0].update({name: value for name, value in (body or {}).items() if name != "state_event"})
        return 200, requests[0]

    def _open(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        self.requests.append({**merge_request(9, body["source_branch"]), **body})
        return 201, self.requests[-1]

    def _note(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        self.notes.append({"id": len(self.notes) + 1, "body": body["body"], "system": False, "author": {"id": ME}})
        return 201, self.notes[-1]

    def _edit(self, found: re.Match[str], body: Any) -> tuple[int, Any]:
        notes = [each for each in self.notes if each["id"] == int(found[1])]
        if not notes:
            return 404, {"message": "404 Note Not Found"}
        notes[0]["body"] = body["body"]
        return 200, notes[0]

    def _delete(self, found: re.Match[str], _body: Any) -> tuple[int, Any]:
        kept = [each for each in self.notes if each["id"] != int(found[1])]
        gone = len(kept) < len(self.notes)
        self.notes = kept
        return (204, None) if gone else (404, {"message": "404 Note Not Found"})

    def _status(self, _found: re.Match[str], body: Any) -> tuple[int, Any]:
        if self.unchanged:
            return 400, {"message": "Cannot transition status via :succeed from :success"}
        self.statuses.append(body)
        return 201, body


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
