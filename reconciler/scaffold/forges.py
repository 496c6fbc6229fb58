"""Which forge a Git remote is on, and where its CI looks for a file."""

from __future__ import annotations

import re

CI_FILES = {
    "github": ".github/workflows/headroom.yaml",
    "gitlab": ".gitlab-ci.yml",
    "gitea": ".gitea/workflows/headroom.yaml",
}
"""The CI file by forge, as `config/scaffold/ci` has one for each."""
_HOST = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?(?P<host>[^/:]+)", re.IGNORECASE)
_WORDS = {"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea", "codeberg": "gitea"}


def forge_of(remote: str) -> str | None:
    """The forge by its host's name, such as `gitlab` of `git@gitlab.example.com:platform/capacity.git`; None where it tells none."""
    found = _HOST.match(remote)
    host = found["host"].lower() if found else ""
    return next((forge for word, forge in _WORDS.items() if word in host), None)
