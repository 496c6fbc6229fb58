"""The remote that a local repository is pushed to."""

from __future__ import annotations

from pathlib import Path

from reconciler.model.errors import Stalled
from reconciler.source.commands import CommandFailedError, Commands

_SECONDS = 10.0


def origin_of(folder: Path) -> str | None:
    """The URL of the remote `origin` of the repository with this root folder; None if there is none.

    A folder inside a repository does not count: a file written there would not be that repository's CI file.
    """
    git_dir = folder / ".git"
    if not git_dir.exists():
        return None
    try:
        return Commands(None, timeout=_SECONDS).line("-C", str(folder), "config", "--get", "remote.origin.url") or None
    except (CommandFailedError, Stalled):
        return None
