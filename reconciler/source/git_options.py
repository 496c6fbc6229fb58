"""How repositories are read, whichever they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from reconciler.source.credentials import Credentials


@dataclass(frozen=True, slots=True)
class GitOptions:
    """state: folder for shallow copies and the last good commits (it may serve several repositories); "" for one that goes with
    the process. allowed_signers: a file. Every commit that is new since the last good one must then be signed by one of them, or
    nothing is taken. "" for none.

    timeout: for each git command. rewind_hold: how long a tree is `rewound` after a force-push. templates: the folder in the
    repository whose templates are read too, wherever the manifests are.
    """

    credentials: Credentials = field(default_factory=Credentials)
    state: str | Path = ""
    allowed_signers: str | Path = ""
    timeout: timedelta = timedelta(minutes=1)
    rewind_hold: timedelta = timedelta(minutes=10)
    templates: str = ""
