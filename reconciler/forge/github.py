"""GitHub: pull requests, comments, statuses and check runs over its REST API; hiding comments needs its GraphQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from reconciler.forge.connection import Connection, GoneError
from reconciler.model.errors import Invalid, Stalled
from reconciler.model.findings import Severity
from reconciler.model.pull_requests import Annotation, Comment, CommitState, CommitStatus, PullRequest

PUBLIC_API = "https://api.github.com"
_LONGEST_DESCRIPTION = 140
_MOST_ANNOTATIONS = 50
"""In one request; the rest comes in further ones."""
_LEVELS = {Severity.ERROR: "failure", Severity.WARNING: "warning", Severity.INFO: "notice"}
_CONCLUSIONS = {CommitState.SUCCESS: "success", CommitState.FAILURE: "failure", CommitState.ERROR: "failure"}
_HIDE = "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { clientMutationId } }"


class GitHub:
    """repository: `OWNER/NAME`; api: of GitHub Enterprise, `https://HOST/api/v3`."""

    def __init__(
        self, repository: str, token: str, *, api: str = PUBLIC_API, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._owner = repository.partition("/")[0]
        self._root = f"/repos/{quote(repository)}"
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        root = (api or PUBLIC_API).rstrip("/")
        self._connection = Connection(self.name, root, f"Bearer {token}", headers=headers, wait=wait)
        # On GitHub Enterprise it stands beside the versions of the REST API.
        self._graphql = Connection(self.name, root.removesuffix("/v3"), f"Bearer {token}", headers=headers, wait=wait)
        self._login = ""
        self._login_known = False

    @property
    def name(self) -> str:
        return "GitHub"

    def close(self) -> None:
        self._connection.close()
        self._graphql.close()

    def pull_request(self, number: int) -> PullRequest:
        return _pull_request(self._connection.get(f"{self._root}/pulls/{number}"))

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        listed = self._connection.pages(f"{self._root}/pulls", {"state": "open", "sort": "created", "direction": "asc"})
        return tuple(_pull_request(each) for each in listed)

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        query = {"state": "all", "head": f"{self._owner}:{branch}", "sort": "created", "direction": "desc"}
        return tuple(_pull_request(each) for each in self._connection.pages(f"{self._root}/pulls", query))

    def open_pull_request(self, *, title: str, body: str, head: str, base: str) -> PullRequest:
        request = {"title": title, "body": body, "head": head, "base": base}
        return _pull_request(self._connection.send("POST", f"{self._root}/pulls", request))

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        self._connection.send("PATCH", f"{self._root}/pulls/{number}", {"title": title, "body": body})

    def close_pull_request(self, number: int) -> None:
        self._connection.send("PATCH", f"{self._root}/pulls/{number}", {"state": "closed"})

    def comments(self, number: int) -> tuple[Comment, ...]:
        listed = self._connection.pages(f"{self._root}/issues/{number}/comments")
        return tuple(
            Comment(str(each["id"]), each.get("body") or "", each.get("node_id", ""))
            for each in listed
            if self._is_own(each.get("user") or {})
        )

    def add_comment(self, number: int, body: str) -> Comment:
        made = self._connection.send("POST", f"{self._root}/issues/{number}/comments", {"body": body})
        return Comment(str(made["id"]), body, made.get("node_id", ""))

    def edit_comment(self, number: int, comment: Comment, body: str) -> None:
        del number  # comments are numbered through the repository
        self._connection.send("PATCH", f"{self._root}/issues/comments/{comment.identity}", {"body": body})

    def hide_comment(self, number: int, comment: Comment) -> None:
        del number
        request = {"query": _HIDE, "variables": {"id": comment.node}}
        answer = self._graphql.send("POST", "/graphql", request)
        if answer and answer.get("errors"):
            raise Invalid(f"GitHub did not hide a comment: {answer['errors'][0].get('message', 'no reason given')}")

    def delete_comment(self, number: int, comment: Comment) -> None:
        del number
        try:
            self._connection.send("DELETE", f"{self._root}/issues/comments/{comment.identity}")
        except GoneError:
            return

    def set_status(self, commit: str, status: CommitStatus) -> None:
        request = {
            "state": status.state.value,
            "context": status.context,
            "description": status.description[:_LONGEST_DESCRIPTION],
        }
        if status.url:
            request["target_url"] = status.url
        self._connection.send("POST", f"{self._root}/statuses/{commit}", request)

    def annotate(self, commit: str, status: CommitStatus, summary: str, annotations: Sequence[Annotation]) -> bool:
        """As a check run, which only apps may make: a workflow's token is an app's, a person's is not."""
        output: dict[str, Any] = {"title": status.description, "summary": summary}
        rows = [_annotation(each) for each in annotations]
        request = {
            "name": f"{status.context} findings",
            "head_sha": commit,
            "status": "completed",
            "conclusion": _CONCLUSIONS.get(status.state, "neutral"),
            "output": {**output, "annotations": rows[:_MOST_ANNOTATIONS]},
        }
        try:
            made = self._connection.send("POST", f"{self._root}/check-runs", request)
        except (GoneError, Stalled):
            return False
        for start in range(_MOST_ANNOTATIONS, len(rows), _MOST_ANNOTATIONS):
            more = {"output": {**output, "annotations": rows[start : start + _MOST_ANNOTATIONS]}}
            self._connection.send("PATCH", f"{self._root}/check-runs/{made['id']}", more)
        return True

    def _is_own(self, author: dict[str, Any]) -> bool:
        """A workflow's token, as any app's, may not ask who it is: then every app counts, and no person."""
        if not self._login_known:
            try:
                self._login = str(self._connection.get("/user")["login"])
            except (GoneError, Stalled):
                self._login = ""
            self._login_known = True
        return author.get("login") == self._login if self._login else author.get("type") == "Bot"


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.file,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": _LEVELS[annotation.severity],
        "title": annotation.title[:255],
        "message": annotation.message,
    }


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
        # A fork that was deleted since has no repository any more.
        from_fork=(head.get("repo") or {}).get("full_name") != (base.get("repo") or {}).get("full_name"),
        is_open=document["state"] == "open",
        merged=document.get("merged_at") is not None,
        body=document.get("body") or "",
        url=document.get("html_url", ""),
    )
