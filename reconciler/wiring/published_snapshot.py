"""The snapshot of a cluster on a branch of the repository, where the daemon has published it for CI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from posixpath import normpath

from reconciler.cluster.inventory import InventoryParent
from reconciler.cluster.snapshot.files import SnapshotCluster, snapshot_of
from reconciler.model.errors import Invalid
from reconciler.report.words import moment
from reconciler.settings.settings import Settings
from reconciler.wiring.repository import git_options

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
