"""Where a repository on this machine is pushed to."""

from __future__ import annotations

from pathlib import Path

from reconciler.model.errors import Stalled
from reconciler.source.commands import CommandFailedError, Commands

_SECONDS = 10.0


def origin_of(folder: Path) -> str | None:
    """The URL of the remote `origin` of the repository whose top is this folder; None where there is none.

    A folder inside another repository is none of that repository's: what is written there is no CI file of it.
    """
    git_dir = folder / ".git"
    if not git_dir.exists():
        return None
    try:
        return Commands(None, timeout=_SECONDS).line("-C", str(folder), "config", "--get", "remote.origin.url") or None
    except (CommandFailedError, Stalled):
        return None
