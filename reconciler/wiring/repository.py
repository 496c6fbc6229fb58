"""The repository that the settings name, and the cluster's snapshot that the daemon has published in it for CI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from posixpath import normpath
from typing import TYPE_CHECKING

from reconciler.clocks import FixedClock
from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.snapshot.files import SnapshotCluster, snapshot_of
from reconciler.model.errors import Invalid
from reconciler.model.source import SourceTree
from reconciler.ports import Clock, Source
from reconciler.report.words import moment
from reconciler.settings.settings import Settings

if TYPE_CHECKING:
    from reconciler.daemon.ending import Watchdog
    from reconciler.source.commands import GitOptions
    from reconciler.source.state import LatestTree


def open_source(settings: Settings, clock: Clock, reader: str = "") -> Source:
    """reader: as in `GitOptions`."""
    from reconciler.source.opening import open_source as opened

    return opened(
        settings.repository or ".",
        clock=clock,
        revision=settings.revision or None,
        subdirectory=settings.path,
        options=git_options(settings, reader),
    )


def latest_tree(settings: Settings, clock: Clock, watchdog: Watchdog, reader: str) -> LatestTree:
    """The repository as a daemon polls it. Which passes end is remembered beside its clone. reader: as in `GitOptions`."""
    from reconciler.source.git import GitSource
    from reconciler.source.state import LatestTree

    source = open_source(settings, clock, reader)
    passes = source.passes if isinstance(source, GitSource) else None
    tree = LatestTree(source, progress=watchdog.git_progress, passes=passes)
    watchdog.on_stuck = tree.stuck
    return tree


def repository_tree(settings: Settings, now: datetime) -> SourceTree:
    """The tree that the settings name, for a command that needs no cluster. Raises as `tree_at`."""
    from reconciler.source.opening import tree_at

    return tree_at(
        settings.repository or ".",
        settings.revision or None,
        settings.path,
        clock=FixedClock(now),
        options=git_options(settings),
    )


def git_options(settings: Settings, reader: str = "") -> GitOptions:
    from reconciler.source.commands import GitOptions
    from reconciler.source.credentials import Credentials

    git = settings.git
    return GitOptions(
        credentials=Credentials(git.username, git.token_file, git.ssh_key, git.known_hosts, plain_http=git.plain_http),
        state=git.state,
        allowed_signers=git.allowed_signers,
        timeout=git.timeout,
        rewind_hold=git.rewind_hold,
        templates=settings.templates,
        reader=reader,
        heard_for=git.interval / 2,
    )


MOST_BYTES = 90 * 2**20
"""The largest snapshot in bytes. GitHub accepts no file of more than 100 MiB."""
_TAKEN = re.compile(r"^Headroom-Snapshot: (\S+)$", re.MULTILINE)
_PATH = re.compile(r"^Headroom-Path: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SnapshotNote:
    """What a snapshot's commit message records: when it was taken, and the folder of manifests that its daemon reads."""

    taken: datetime
    path: str

    @property
    def message(self) -> str:
        taken = self.taken.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"Snapshot of the cluster\n\nHeadroom-Snapshot: {taken}\nHeadroom-Path: {self.path}"

    @classmethod
    def of(cls, message: str) -> SnapshotNote | None:
        """The note in a commit message; None for a commit that is not a snapshot."""
        taken, path = _TAKEN.search(message), _PATH.search(message)
        try:
            time = datetime.fromisoformat(taken[1]) if taken else None
        except ValueError:
            return None
        return None if time is None or time.tzinfo is None else cls(time, path[1].strip() if path else "")


class PublishedCluster(SnapshotCluster):
    """The snapshot on a branch."""

    def __init__(
        self, files: Mapping[str, bytes], inventory: InventoryParent, *, taken: datetime, folder: str, branch: str
    ) -> None:
        """folder: that of its manifests, "" for the whole repository."""
        name = f"published:{branch}, as of {moment(taken, UTC)}"
        super().__init__(name, partial(snapshot_of, name, files), inventory)
        self.taken = taken
        self.folder = folder
        self.branch = branch


def published_cluster(settings: Settings, inventory: InventoryParent, branch: str = "") -> PublishedCluster | None:
    """The snapshot on a branch of the settings' repository; None where there is none. branch: "" is the settings' own.

    Raises `Invalid` for a branch that has something else, or the snapshot of another folder's cluster, and `Stalled`.
    """
    from reconciler.source.branches import read_branch

    name = branch or settings.snapshot.branch
    found = read_branch(settings.repository or ".", name, git_options(settings), most_bytes=MOST_BYTES)
    if found is None:
        return None
    note = SnapshotNote.of(found.message)
    if note is None:
        raise Invalid(
            f"branch {name!r} has no snapshot that headroom has published",
            hint="set snapshot.branch as the daemon has it, or name a cluster with --cluster",
        )
    if not branch and note.path != manifests_folder(settings):
        path = f"give --path {note.path}" if note.path else "leave --path out"
        raise Invalid(
            f"the snapshot on branch {name!r} is of the cluster that {note.path or 'the whole repository'} is for",
            hint=f"{path}, or name the branch of the right cluster: --cluster published:BRANCH",
        )
    return PublishedCluster(found.files, inventory, taken=note.taken, folder=note.path, branch=name)


def manifests_folder(settings: Settings) -> str:
    """The manifests' folder as a snapshot names it; "" is the whole repository."""
    folder = normpath(settings.path.strip("/"))
    return "" if folder == "." else folder
