"""Whether a CI job runs for a pull request from a fork, whose templates nobody has reviewed yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def is_of_a_fork(environment: Mapping[str, str]) -> bool:
    """Judged by the variables of GitHub and Gitea Actions, or GitLab CI. An unreadable event counts as a fork's."""
    project = environment.get("CI_MERGE_REQUEST_PROJECT_ID", "")
    if project != environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", project):
        return True
    event = environment.get("GITHUB_EVENT_PATH")
    if not event:
        return False
    try:
        pull_request = json.loads(Path(event).read_bytes()).get("pull_request")
    except (OSError, ValueError, AttributeError):
        return True
    return bool(pull_request) and _repository(pull_request, "head") != _repository(pull_request, "base")


def _repository(pull_request: Mapping[str, Any], side: str) -> str | None:
    """The repository of one side; None for the head of a fork that was deleted."""
    repository = (pull_request.get(side) or {}).get("repo") or {}
    name = repository.get("full_name")
    return None if name is None else str(name)
