"""Options for reading repositories of any kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from reconciler.source.credentials import Credentials


@dataclass(frozen=True, slots=True)
class GitOptions:
    """state: folder for shallow copies and the last good commits, which several repositories may share. "" for a temporary one.
    allowed_signers: a file, "" for none. With one, every commit since the last good one must be signed by one of them, or nothing is
    taken.

    timeout: for each git command. rewind_hold: how long a tree counts as rewound after a force-push. templates: the folder in the
    repository whose templates are read too, wherever the manifests are.

    reader: one of several that read the same revision, "" for the only one. They share its copy, and for `heard_for` what the remote
    said; each has a last good commit of its own.
    """

    credentials: Credentials = field(default_factory=Credentials)
    state: str | Path = ""
    allowed_signers: str | Path = ""
    timeout: timedelta = timedelta(minutes=1)
    rewind_hold: timedelta = timedelta(minutes=10)
    templates: str = ""
    reader: str = ""
    heard_for: timedelta = timedelta(0)
