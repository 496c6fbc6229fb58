"""GitHub: pull requests, comments, statuses and check runs over its REST API; hiding comments needs its GraphQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar
from urllib.parse import quote

from reconciler.forge.client import ForgeClient
from reconciler.forge.connection import ForgeConnection, GoneError
from reconciler.forge.kind import ForgeKind, Webhooks, actions_event, actions_job
from reconciler.model.errors import Invalid, Stalled
from reconciler.model.findings import Severity
from reconciler.ports import Annotation, Comment, CommitState, CommitStatus, PullRequest

PUBLIC_API = "https://api.github.com"
_MOST_ANNOTATIONS = 50
"""The most annotations in one request; more come in further requests."""
_LEVELS = {Severity.ERROR: "failure", Severity.WARNING: "warning", Severity.INFO: "notice"}
_CONCLUSIONS = {CommitState.SUCCESS: "success", CommitState.FAILURE: "failure", CommitState.ERROR: "failure"}
_HIDE = "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { clientMutationId } }"


class GitHub(ForgeClient):
    """repository: `OWNER/NAME`. api: GitHub Enterprise's, `https://HOST/api/v3`."""

    name = "GitHub"
    longest_description = 140
    states: ClassVar[Mapping[CommitState, str]] = {CommitState.NEUTRAL: "pending"}

    def __init__(
        self, repository: str, token: str, *, api: str = PUBLIC_API, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._owner = repository.partition("/")[0]
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        root = (api or PUBLIC_API).rstrip("/")
        connection = ForgeConnection(self.name, root, f"Bearer {token}", headers=headers, wait=wait)
        super().__init__(f"/repos/{quote(repository)}", connection)
        # On GitHub Enterprise it is next to the versions of the REST API.
        self._graphql = root.removesuffix("/v3")

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        listed = self._connection.pages(self._pulls, {"state": "open", "sort": "created", "direction": "asc"})
        return tuple(self._read(each) for each in listed)

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        query = {"state": "all", "head": f"{self._owner}:{branch}", "sort": "created", "direction": "desc"}
        return tuple(self._read(each) for each in self._connection.pages(self._pulls, query))

    def hide_comment(self, number: int, comment: Comment) -> None:
        self.edit_comment(number, comment, comment.body)
        request = {"query": _HIDE, "variables": {"id": comment.node}}
        answer = self._connection.send("POST", "/graphql", request, api=self._graphql)
        if answer and answer.get("errors"):
            raise Invalid(f"GitHub did not hide a comment: {answer['errors'][0].get('message', 'no reason given')}")

    def annotate(self, commit: str, status: CommitStatus, summary: str, annotations: Sequence[Annotation]) -> bool:
        """Annotates with a check run, which only apps may create. A workflow's token is an app's, a person's is not."""
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

    def _listed_comments(self, number: int) -> Iterable[dict[str, Any]]:
        return self._connection.pages(self._comments_of(number))

    def _is_own(self, comment: dict[str, Any]) -> bool:
        """Whether this account is the author. A workflow's token, like any app's, cannot ask who it is; then every app counts."""
        author = comment.get("user") or {}
        login = self._account.get("login")
        return bool(author.get("login") == login if login else author.get("type") == "Bot")

    @cached_property
    def _account(self) -> dict[str, Any]:
        try:
            return super()._account
        except (GoneError, Stalled):
            return {}


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.file,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": _LEVELS[annotation.severity],
        "title": annotation.title[:255],
        "message": annotation.message,
    }


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
