"""GitLab: merge requests, notes and commit statuses over its REST API, which has no annotations of lines from outside a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from reconciler.forge.client import ForgeClient
from reconciler.forge.connection import ForgeConnection
from reconciler.forge.kind import CiJob, ForgeKind, WebhookEvent, Webhooks, push_event
from reconciler.model.errors import Invalid
from reconciler.ports import Comment, CommitState, PullRequest

PUBLIC_API = "https://gitlab.com/api/v4"


class GitLab(ForgeClient):
    """repository: a project's path or number. api: `https://HOST/api/v4`."""

    name = "GitLab"
    pulls, change, closing = "merge_requests", "PUT", {"state_event": "close"}
    body, head, base, context = "description", "source_branch", "target_branch", "name"
    longest_description = 255
    states: ClassVar[Mapping[CommitState, str]] = {
        CommitState.FAILURE: "failed",
        CommitState.ERROR: "failed",
        CommitState.NEUTRAL: "skipped",
    }

    def __init__(
        self, repository: str, token: str, *, api: str = PUBLIC_API, wait: Callable[[float], None] = time.sleep
    ) -> None:
        connection = ForgeConnection(self.name, api or PUBLIC_API, f"Bearer {token}", wait=wait)
        super().__init__(f"/projects/{quote(repository, safe='')}", connection)

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        query = {"state": "opened", "order_by": "created_at", "sort": "asc"}
        return tuple(self._read(each) for each in self._connection.pages(self._pulls, query))

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        query = {"state": "all", "source_branch": branch, "order_by": "created_at", "sort": "desc"}
        listed = (self._read(each) for each in self._connection.pages(self._pulls, query))
        return tuple(each for each in listed if not each.from_fork)

    def _post_status(self, path: str, request: Mapping[str, Any]) -> None:
        try:
            # 409: another status of the commit is being written, and this one was not.
            self._connection.send("POST", path, request, again=frozenset({409}))
        except Invalid as error:
            # It answers so to a status that equals the present one.
            if "transition" not in error.message:
                raise

    def _comments_of(self, number: int) -> str:
        return f"{self._pulls}/{number}/notes"

    def _place_of(self, number: int, comment: Comment) -> str:
        return f"{self._comments_of(number)}/{comment.identity}"

    def _listed_comments(self, number: int) -> Iterable[dict[str, Any]]:
        return self._connection.pages(self._comments_of(number), {"order_by": "created_at", "sort": "asc"})

    def _is_own(self, comment: dict[str, Any]) -> bool:
        return not comment.get("system") and (comment.get("author") or {}).get("id") == self._account["id"]

    def _read(self, document: dict[str, Any]) -> PullRequest:
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
        return WebhookEvent()
    return push_event(document) if name == "Push Hook" else None


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
