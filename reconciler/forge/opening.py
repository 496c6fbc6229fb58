"""Opens a forge, links to its pages, and reads what CI tells about the pull request of a job."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reconciler.forge.gitea import Gitea
from reconciler.forge.github import GitHub
from reconciler.forge.gitlab import GitLab
from reconciler.model.errors import Invalid, Stalled
from reconciler.ports import Forge
from reconciler.report.escaping import uri_path
from reconciler.report.status.document import Links

FORGES = ("github", "gitlab", "gitea")
TOKEN_VARIABLE = "HEADROOM_FORGE_TOKEN"  # noqa: S105 - the name of a variable
_TOKENS = {
    "github": ("GITHUB_TOKEN", "GH_TOKEN"),
    "gitlab": ("GITLAB_TOKEN",),
    "gitea": ("GITEA_TOKEN", "GITHUB_TOKEN"),  # a job of Gitea Actions has both
}
NUMBER_VARIABLES = {
    "github": "GITHUB_EVENT_PATH or GITHUB_REF",
    "gitlab": "CI_MERGE_REQUEST_IID",
    "gitea": "GITHUB_EVENT_PATH or GITHUB_REF",
}
"""In words, what tells a job the number of its pull request."""
_REPOSITORY_VARIABLES = {
    "github": "GITHUB_REPOSITORY",
    "gitlab": "CI_MERGE_REQUEST_PROJECT_ID or CI_PROJECT_ID",
    "gitea": "GITHUB_REPOSITORY",
}
_SSH_SHORT = re.compile(r"(?:[^/@:]+@)?(?P<host>[A-Za-z0-9.-]+):(?!//)(?P<path>.+)")
_HOSTS = {"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea", "codeberg": "gitea"}
"""The forge by a part of its host's name."""
_PULL = re.compile(r"refs/pull/(\d+)/")


@dataclass(frozen=True, slots=True)
class CiJob:
    """What a CI job knows; "" and None for what is not known. number: its pull request's. head_commit: the pull request's, not that of
    a merge that CI may have checked out. url: the job's."""

    api: str = ""
    repository: str = ""
    number: int | None = None
    head_commit: str = ""
    url: str = ""


def surroundings(kind: str, environment: Mapping[str, str]) -> CiJob:
    """The CI job by the variables of GitHub Actions, Gitea Actions (which has the same) or GitLab CI; empty outside of CI."""
    if kind == "gitlab":
        return _gitlab(environment)
    repository = environment.get("GITHUB_REPOSITORY", "")
    pull = _event(environment).get("pull_request") or {}
    found = _PULL.match(environment.get("GITHUB_REF", ""))
    number = pull.get("number") or (int(found[1]) if found else None)
    # Gitea's address of a run has its number in the repository, and an identity of its own beside that.
    run = environment.get("GITHUB_RUN_NUMBER" if kind == "gitea" else "GITHUB_RUN_ID", "")
    server = environment.get("GITHUB_SERVER_URL", "")
    return CiJob(
        api=environment.get("GITHUB_API_URL", ""),
        repository=repository,
        number=number,
        head_commit=str((pull.get("head") or {}).get("sha") or ""),
        url=f"{server}/{repository}/actions/runs/{run}" if server and run else "",
    )


def _gitlab(environment: Mapping[str, str]) -> CiJob:
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    return CiJob(
        api=environment.get("CI_API_V4_URL", ""),
        repository=environment.get("CI_MERGE_REQUEST_PROJECT_ID") or environment.get("CI_PROJECT_ID", ""),
        number=int(number) if number.isdigit() else None,
        # A pipeline for merged results has checked out a temporary merge commit.
        head_commit=environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environment.get("CI_COMMIT_SHA", ""),
        url=environment.get("CI_JOB_URL", ""),
    )


def _event(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    if not path:
        return {}
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def forge_token(kind: str, token_file: str = "") -> str:
    """The token, read again at each call. Raises `Stalled` if there is none."""
    if token_file:
        try:
            return Path(token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Stalled(
                f"token file {token_file} cannot be read ({getattr(error, 'strerror', None) or 'it is not text'})",
                reason="AuthenticationFailed",
                hint="set forge.tokenFile to a file with the token alone",
            ) from error
    names = (TOKEN_VARIABLE, *_TOKENS[kind])
    token = next((os.environ[name].strip() for name in names if os.environ.get(name, "").strip()), "")
    if not token:
        raise Stalled(
            f"there is no token for {kind}",
            reason="AuthenticationFailed",
            hint=f"set {' or '.join(names[:2])} to a token that may comment on pull requests",
        )
    return token


def open_forge(kind: str, *, repository: str, token: str, api: str = "", plain_http: bool = False) -> Forge:
    """repository: `OWNER/NAME`, or GitLab's path or number. api: its root, if it is not the public one. plain_http: whether the token
    may be sent unencrypted, to any host.

    Raises `Invalid` for what cannot be asked anything.
    """
    check_forge(kind, repository=repository, api=api, plain_http=plain_http)
    if kind == "github":
        return GitHub(repository, token, api=api)
    if kind == "gitlab":
        return GitLab(repository, token, api=api)
    return Gitea(repository, token, api=api)


def check_forge(kind: str, *, repository: str, api: str = "", plain_http: bool = False) -> None:
    """The same checks as `open_forge`, without a token."""
    if kind not in FORGES:
        raise Invalid(f"{kind!r} is not a forge", hint=f"write one of {', '.join(FORGES)}")
    form = "the project's path or number" if kind == "gitlab" else "OWNER/NAME, as in its address"
    if not repository:
        raise Invalid(
            f"it is not known which repository on {kind} is meant: forge.repository is empty",
            hint=f"set it, or HEADROOM_FORGE_REPOSITORY, to {form}; in CI {_REPOSITORY_VARIABLES[kind]} has it",
        )
    if kind != "gitlab" and repository.count("/") != 1:
        raise Invalid(f"{repository!r} is not a repository on {kind}", hint=f"set forge.repository to {form}")
    if kind == "gitea" and not api:
        raise Invalid(
            "it is not known where Gitea is: forge.api is empty",
            hint="set it, or HEADROOM_FORGE_API, to https://HOST/api/v1; in CI GITHUB_API_URL has it",
        )
    if api:
        _check_address(api, plain_http=plain_http)


def _check_address(api: str, *, plain_http: bool) -> None:
    parts = urlsplit(api)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
        raise Invalid(
            "forge.api is not the address of an API", hint="write https://HOST/api/v1, with no user and no token"
        )
    if parts.scheme == "http" and not plain_http and not _is_this_machine(parts.hostname):
        raise Invalid(
            f"the token for {parts.hostname} is not sent over plain http",
            hint="write https, or set git.plainHttp when the network between is trusted",
        )


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def links_to(repository: str, forge: str = "") -> Links:
    """repository: its URL, or ssh's short form. forge: if the settings name one; otherwise the host tells. No links to other hosts."""
    short = _SSH_SHORT.fullmatch(repository) if "://" not in repository else None
    if short is not None:
        scheme, host, path = "https", short["host"], short["path"]
    else:
        try:
            parts = urlsplit(repository)
            port = parts.port if parts.scheme in {"http", "https"} else None
        except ValueError:
            return Links()
        if parts.scheme not in {"http", "https", "ssh", "git"} or not parts.hostname:
            return Links()
        scheme = "http" if parts.scheme == "http" else "https"
        host, path = f"{parts.hostname}:{port}" if port else parts.hostname, parts.path
    known = forge or next((kind for part, kind in _HOSTS.items() if part in host), "")
    path = path.strip("/").removesuffix(".git")
    return Links(f"{scheme}://{host}/{uri_path(path)}", known) if known and path else Links()
