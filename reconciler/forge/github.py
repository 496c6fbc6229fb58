"""GitHub: pull requests, comments, statuses and check runs over its REST API; hiding comments needs its GraphQL."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from reconciler.forge.connection import ForgeConnection, GoneError
from reconciler.forge.kind import ForgeKind, Webhooks, actions_event, actions_job
from reconciler.model.errors import Invalid, Stalled
from reconciler.model.findings import Severity
from reconciler.ports import Annotation, Comment, CommitState, CommitStatus, PullRequest


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


PUBLIC_API = "https://api.github.com"
_MOST_ANNOTATIONS = 50
"""The most annotations in one request; more come in further requests."""
_LEVELS = {Severity.ERROR: "failure", Severity.WARNING: "warning", Severity.INFO: "notice"}
_CONCLUSIONS = {CommitState.SUCCESS: "success", CommitState.FAILURE: "failure", CommitState.ERROR: "failure"}
_HIDE = "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { clientMutationId } }"


class GitHub(GitHubLike):
    """repository: `OWNER/NAME`. api: GitHub Enterprise's, `https://HOST/api/v3`."""

    longest_description = 140
    neutral_state = "pending"

    def __init__(
        self, repository: str, token: str, *, api: str = PUBLIC_API, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._owner = repository.partition("/")[0]
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        root = (api or PUBLIC_API).rstrip("/")
        super().__init__(repository, ForgeConnection(self.name, root, f"Bearer {token}", headers=headers, wait=wait))
        # On GitHub Enterprise it is next to the versions of the REST API.
        self._graphql = ForgeConnection(
            self.name, root.removesuffix("/v3"), f"Bearer {token}", headers=headers, wait=wait
        )
        self._login = ""
        self._login_known = False

    @property
    def name(self) -> str:
        return "GitHub"

    def close(self) -> None:
        super().close()
        self._graphql.close()

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        listed = self._connection.pages(f"{self._root}/pulls", {"state": "open", "sort": "created", "direction": "asc"})
        return tuple(self._pull_request(each) for each in listed)

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        query = {"state": "all", "head": f"{self._owner}:{branch}", "sort": "created", "direction": "desc"}
        return tuple(self._pull_request(each) for each in self._connection.pages(f"{self._root}/pulls", query))

    def comments(self, number: int) -> tuple[Comment, ...]:
        listed = self._connection.pages(f"{self._root}/issues/{number}/comments")
        return tuple(
            Comment(str(each["id"]), each.get("body") or "", each.get("node_id", ""))
            for each in listed
            if self._is_own(each.get("user") or {})
        )

    def hide_comment(self, number: int, comment: Comment) -> None:
        del number
        request = {"query": _HIDE, "variables": {"id": comment.node}}
        answer = self._graphql.send("POST", "/graphql", request)
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

    def _is_from_fork(self, head: dict[str, Any], base: dict[str, Any]) -> bool:
        """Whether it is from a fork. A deleted fork has no repository any more."""
        return (head.get("repo") or {}).get("full_name") != (base.get("repo") or {}).get("full_name")

    def _is_merged(self, document: dict[str, Any]) -> bool:
        return document.get("merged_at") is not None

    def _is_own(self, author: dict[str, Any]) -> bool:
        """Whether this account is the author. A workflow's token, like any app's, cannot ask who it is; then every app counts."""
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
