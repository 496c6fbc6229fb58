"""Links from what the daemon shows to the forge that has the repository."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from reconciler.report.escaping import uri_path

_SSH_SHORT = re.compile(r"(?:[^/@:]+@)?(?P<host>[A-Za-z0-9.-]+):(?!//)(?P<path>.+)")
_HOSTS = {"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea", "codeberg": "gitea"}
"""The forge by a part of its host's name."""


@dataclass(frozen=True, slots=True)
class Links:
    """base: the repository's address in a browser, "" where it has none. forge: github, gitlab or gitea."""

    base: str = ""
    forge: str = ""

    def commit(self, revision: str | None) -> str | None:
        """The page of a revision (`main@sha1:` and 40 digits)."""
        commit = (revision or "").partition("@sha1:")[2]
        if not self.base or not commit:
            return None
        return f"{self.base}/-/commit/{commit}" if self.forge == "gitlab" else f"{self.base}/commit/{commit}"

    def line(self, revision: str | None, file: str | None, line: int | None) -> str | None:
        """The page of a file at a revision, at a line that is counted from 1."""
        commit = (revision or "").partition("@sha1:")[2]
        if not self.base or not commit or not file:
            return None
        folder = {"gitlab": "-/blob", "gitea": "src/commit"}.get(self.forge, "blob")
        return f"{self.base}/{folder}/{commit}/{uri_path(file)}" + (f"#L{line}" if line else "")


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
