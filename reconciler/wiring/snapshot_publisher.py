"""The daemon's snapshots for CI: taken of its cluster, and pushed to a branch of the repository."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from reconciler.model.errors import Invalid
from reconciler.ports import Clock, Cluster
from reconciler.settings.settings import Settings
from reconciler.wiring.inputs import (
    MOST_BYTES,
    SnapshotNote,
    git_options,
    manifests_folder,
)
from reconciler.wiring.session import captured_of

RENEWED_AFTER = timedelta(days=1)
"""A snapshot is pushed at least this often, even if nothing has changed. So an older one shows that the daemon does not run."""


class SnapshotPublisher:
    """Raises `Invalid` if a setting is missing."""

    def __init__(self, settings: Settings, cluster: Cluster, clock: Clock) -> None:
        from reconciler.source.opening import is_remote

        branch = settings.snapshot.branch
        if not is_remote(settings.repository):
            raise _nowhere_to_push(settings.repository)
        if not branch or branch in {settings.revision, settings.proposal.branch, settings.proposal.base}:
            raise Invalid(
                f"snapshot.branch {branch!r} is not a branch that headroom may use for its snapshots",
                hint="name one that is used for nothing else, such as headroom/snapshot",
            )
        self._settings = settings
        self._cluster = cluster
        self._clock = clock

    def publish(self) -> str:
        """Takes a snapshot. Returns `published` if it differs from the one on the branch or that one is a day old, else `unchanged`."""
        from reconciler.cluster.embedded.cluster import EmbeddedCluster
        from reconciler.cluster.kubernetes import KubernetesCluster
        from reconciler.source.branches import WrittenBranch

        settings, cluster, now = self._settings, self._cluster, self._clock.now()
        if not isinstance(cluster, KubernetesCluster | EmbeddedCluster):
            raise Invalid(f"{cluster.name} is not a cluster to capture")
        files = captured_of(settings, cluster, self._clock).files
        size = sum(map(len, files.values()))
        if size > MOST_BYTES:
            raise Invalid(
                f"the snapshot is not published: it has {size / 2**20:.0f} MiB, of {MOST_BYTES // 2**20} at most"
            )

        def is_current(message: str) -> bool:
            note = SnapshotNote.of(message)
            if note is None or note.path != manifests_folder(settings):
                whose = "no snapshot" if note is None else f"the snapshot of {note.path or 'the whole repository'}"
                raise Invalid(
                    f"branch {settings.snapshot.branch!r} has {whose}, which would be lost",
                    hint="set snapshot.branch to one that is used for nothing else; each cluster has its own",
                )
            return timedelta(0) <= now - note.taken < RENEWED_AFTER

        branch = WrittenBranch(settings.repository, settings.snapshot.branch, git_options(settings))
        written = branch.replace(
            files, message=SnapshotNote(now, manifests_folder(settings)).message, is_current=is_current
        )
        return "published" if written else "unchanged"


def _nowhere_to_push(repository: str) -> Invalid:
    where, hint = "", "set repository to its URL"
    if repository:
        where = f": {repository} is a path"
        hint = f"write {Path(repository).absolute().as_uri()}, or a remote's URL"
    return Invalid(f"snapshot.publish needs a repository to push to{where}", hint=hint)
