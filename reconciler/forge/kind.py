"""What headroom must know of a kind of forge beside its API: how its addresses, CI variables and webhooks look."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.ports import Forge

_PULL = re.compile(r"refs/pull/(\d+)/")


@dataclass(frozen=True, slots=True)
class CiJob:
    """What a CI job knows; "" and None for what is not known. number: its pull request's. head_commit: the pull request's, not that of
    a merge that CI may have checked out. url: the job's. from_fork: whether the pull request is a fork's, or that cannot be told."""

    api: str = ""
    repository: str = ""
    number: int | None = None
    head_commit: str = ""
    url: str = ""
    from_fork: bool = False


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """pushed: the branch that was pushed to, "" for a tag; None where a pull request was opened, changed or closed."""

    pushed: str | None = None


@dataclass(frozen=True, slots=True)
class Webhooks:
    """event, proof: the headers with the event's name and with what only the sender can know, in lower case. proof_of: what that must
    be, from the secret and the body's HMAC-SHA256 with it. read: the event of a body; None for one of no interest. Raises `ValueError`,
    `KeyError` or `TypeError` for a body of another form."""

    event: str
    proof: str
    proof_of: Callable[[str, str], str]
    read: Callable[[str, dict[str, Any]], WebhookEvent | None]


@dataclass(frozen=True, slots=True)
class ForgeKind:
    """open: a client, by repository, token and the API's address ("" for the public one). hosts: words in names of its hosts.

    tokens: variables that may have a token. job: the CI job by its variables. number_variable, repository_variable: in words, which of
    them tell the number and the repository. is_owner_and_name: whether a repository is `OWNER/NAME`; otherwise repository_words says
    what it is. api_words: how to find its address, "" where there is a public one. commit_page, file_page: parts of its addresses.
    job_files: what follows a job's address in those of its artifacts, "" where the job's page only lists them.
    """

    open: Callable[[str, str, str], Forge]
    hosts: tuple[str, ...]
    tokens: tuple[str, ...]
    job: Callable[[Mapping[str, str]], CiJob]
    number_variable: str
    repository_variable: str
    webhooks: Webhooks
    ci_file: str
    is_owner_and_name: bool = True
    repository_words: str = "OWNER/NAME, as in its address"
    api_words: str = ""
    commit_page: str = "commit"
    file_page: str = "blob"
    job_files: str = ""


def push_event(document: dict[str, Any]) -> WebhookEvent:
    """The push that a body is about; every forge writes it so."""
    kind, _, branch = str(document["ref"]).partition("refs/heads/")
    return WebhookEvent("" if kind else branch)


def actions_job(environment: Mapping[str, str], run: str) -> CiJob:
    """The CI job by the variables of GitHub Actions, which Gitea Actions has too. run: the variable with the run's number in addresses."""
    repository = environment.get("GITHUB_REPOSITORY", "")
    event = _event(environment)
    pull = (event or {}).get("pull_request") or {}
    found = _PULL.match(environment.get("GITHUB_REF", ""))
    server, run_number = environment.get("GITHUB_SERVER_URL", ""), environment.get(run, "")
    return CiJob(
        api=environment.get("GITHUB_API_URL", ""),
        repository=repository,
        number=pull.get("number") or (int(found[1]) if found else None),
        head_commit=str((pull.get("head") or {}).get("sha") or ""),
        url=f"{server}/{repository}/actions/runs/{run_number}" if server and run_number else "",
        from_fork=event is None or (bool(pull) and _repository(pull, "head") != _repository(pull, "base")),
    )


def _repository(pull: Mapping[str, Any], side: str) -> str | None:
    """The repository of one side; None for the head of a fork that was deleted."""
    name = ((pull.get(side) or {}).get("repo") or {}).get("full_name")
    return None if name is None else str(name)


def _event(environment: Mapping[str, str]) -> dict[str, Any] | None:
    """The event that the job runs for; empty outside of a job, None if it cannot be read."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    if not path:
        return {}
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def actions_event(name: str, document: dict[str, Any]) -> WebhookEvent | None:
    """The event of a webhook of GitHub or Gitea."""
    if name == "push":
        return push_event(document)
    return WebhookEvent() if name.startswith("pull_request") else None
