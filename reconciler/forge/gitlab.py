"""GitLab: merge requests, notes and commit statuses over its REST API, which has no annotations of lines from outside a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from reconciler.forge.connection import ForgeConnection, GoneError
from reconciler.forge.kind import CiJob, ForgeKind, PullRequestEvent, WebhookEvent, Webhooks, folded, pushed
from reconciler.model.errors import Invalid
from reconciler.ports import Annotation, Comment, CommitState, CommitStatus, PullRequest

PUBLIC_API = "https://gitlab.com/api/v4"
_STATES = {
    CommitState.PENDING: "pending",
    CommitState.SUCCESS: "success",
    CommitState.FAILURE: "failed",
    CommitState.ERROR: "failed",
    CommitState.NEUTRAL: "skipped",
}
_LONGEST_DESCRIPTION = 255


class GitLab:
    """repository: a project's path or number. api: `https://HOST/api/v4`."""

    def __init__(
        self, repository: str, token: str, *, api: str = PUBLIC_API, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._root = f"/projects/{quote(repository, safe='')}"
        self._connection = ForgeConnection(self.name, api or PUBLIC_API, f"Bearer {token}", wait=wait)
        self._user: int | None = None

    @property
    def name(self) -> str:
        return "GitLab"

    def close(self) -> None:
        self._connection.close()

    def pull_request(self, number: int) -> PullRequest:
        return _merge_request(self._connection.get(f"{self._root}/merge_requests/{number}"))

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        query = {"state": "opened", "order_by": "created_at", "sort": "asc"}
        return tuple(_merge_request(each) for each in self._connection.pages(f"{self._root}/merge_requests", query))

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        query = {"state": "all", "source_branch": branch, "order_by": "created_at", "sort": "desc"}
        listed = (_merge_request(each) for each in self._connection.pages(f"{self._root}/merge_requests", query))
        return tuple(each for each in listed if not each.from_fork)

    def open_pull_request(self, *, title: str, body: str, head: str, base: str) -> PullRequest:
        request = {"title": title, "description": body, "source_branch": head, "target_branch": base}
        return _merge_request(self._connection.send("POST", f"{self._root}/merge_requests", request))

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        self._connection.send("PUT", f"{self._root}/merge_requests/{number}", {"title": title, "description": body})

    def close_pull_request(self, number: int) -> None:
        self._connection.send("PUT", f"{self._root}/merge_requests/{number}", {"state_event": "close"})

    def comments(self, number: int) -> tuple[Comment, ...]:
        query = {"order_by": "created_at", "sort": "asc"}
        listed = self._connection.pages(f"{self._root}/merge_requests/{number}/notes", query)
        user = self._own_user()
        return tuple(
            Comment(str(each["id"]), each.get("body") or "")
            for each in listed
            if not each.get("system") and (each.get("author") or {}).get("id") == user
        )

    def add_comment(self, number: int, body: str) -> Comment:
        made = self._connection.send("POST", f"{self._root}/merge_requests/{number}/notes", {"body": body})
        return Comment(str(made["id"]), body)

    def edit_comment(self, number: int, comment: Comment, body: str) -> None:
        self._connection.send("PUT", self._note(number, comment), {"body": body})

    def hide_comment(self, number: int, comment: Comment) -> None:
        self.edit_comment(number, comment, folded(comment.body))

    def delete_comment(self, number: int, comment: Comment) -> None:
        try:
            self._connection.send("DELETE", self._note(number, comment))
        except GoneError:
            return

    def set_status(self, commit: str, status: CommitStatus) -> None:
        request = {
            "state": _STATES[status.state],
            "name": status.context,
            "description": status.description[:_LONGEST_DESCRIPTION],
        }
        if status.url:
            request["target_url"] = status.url
        try:
            # 409: another status of the commit is being written, and this one was not.
            self._connection.send("POST", f"{self._root}/statuses/{commit}", request, again=frozenset({409}))
        except Invalid as error:
            # It answers so to a status that equals the present one.
            if "transition" not in error.message:
                raise

    def annotate(self, commit: str, status: CommitStatus, summary: str, annotations: Sequence[Annotation]) -> bool:
        del commit, status, summary, annotations
        return False

    def _note(self, number: int, comment: Comment) -> str:
        return f"{self._root}/merge_requests/{number}/notes/{comment.identity}"

    def _own_user(self) -> int:
        if self._user is None:
            self._user = int(self._connection.get("/user")["id"])
        return self._user


def _merge_request(document: dict[str, Any]) -> PullRequest:
    number = int(document["iid"])
    return PullRequest(
        number=number,
        title=document["title"],
        head_commit=document.get("sha") or "",
        head_branch=document["source_branch"],
        head_ref=f"refs/merge-requests/{number}/head",
        base_branch=document["target_branch"],
        from_fork=document.get("source_project_id") != document.get("target_project_id"),
        is_open=document["state"] == "opened",
        merged=document["state"] == "merged",
        body=document.get("description") or "",
        url=document.get("web_url", ""),
    )


def _job(environment: Mapping[str, str]) -> CiJob:
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    project = environment.get("CI_MERGE_REQUEST_PROJECT_ID", "")
    return CiJob(
        api=environment.get("CI_API_V4_URL", ""),
        repository=project or environment.get("CI_PROJECT_ID", ""),
        number=int(number) if number.isdigit() else None,
        # A pipeline for merged results has checked out a temporary merge commit.
        head_commit=environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environment.get("CI_COMMIT_SHA", ""),
        url=environment.get("CI_JOB_URL", ""),
        from_fork=project != environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", project),
    )


def _webhook(name: str, document: dict[str, Any]) -> WebhookEvent | None:
    if name == "Merge Request Hook":
        return PullRequestEvent(int(document["object_attributes"]["iid"]))
    return pushed(document) if name == "Push Hook" else None


KIND = ForgeKind(
    open=lambda repository, token, api: GitLab(repository, token, api=api),
    hosts=("gitlab",),
    tokens=("GITLAB_TOKEN",),
    job=_job,
    number_variable="CI_MERGE_REQUEST_IID",
    repository_variable="CI_MERGE_REQUEST_PROJECT_ID or CI_PROJECT_ID",
    webhooks=Webhooks("x-gitlab-event", "x-gitlab-token", lambda secret, _: secret, _webhook),
    ci_file=".gitlab-ci.yml",
    is_owner_and_name=False,
    repository_words="the project's path or number",
    commit_page="-/commit",
    file_page="-/blob",
    job_files="artifacts/file",
)
