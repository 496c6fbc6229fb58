"""What is known of the repository: the newest tree, and the state that outlives a restart.

The newest tree is polled beside the passes. A poll may take a minute on a slow network, and a pass for a change of the cluster must not
wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from reconciler.model.declared import SourceTree
from reconciler.model.quantity import doubled
from reconciler.ports import Clock, Source
from reconciler.source.child import heard_by

_FILE = "good.json"
_PASSES = "passes.json"
_MOST_KILLS = 2
"""So many processes may end in the middle of a first pass over a commit. One may be a machine that was switched off."""
_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)


class Good(msgspec.Struct, frozen=True, rename="camel"):
    """The commit in force. time: its commit time, in seconds since 1970. rewound_at: when a commit last came into force that did
    not descend from its predecessor."""

    name: str
    commit: str
    time: int
    rewound_at: datetime | None = None

    @property
    def revision(self) -> str:
        return f"{self.name}@sha1:{self.commit}"


def is_rewound(rewound_at: datetime | None, now: datetime, hold: timedelta) -> bool:
    """Whether a force-push is so recent that nothing may be pruned or released because of it."""
    return rewound_at is not None and now < rewound_at + hold


def load_good(folder: Path) -> Good | None:
    """The saved commit; None if none was saved, or it cannot be read. The next poll then starts from nothing."""
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=Good)
    except (OSError, msgspec.MsgspecError):
        return None


def save_good(folder: Path, good: Good) -> None:
    _replace(folder / _FILE, good)


def _replace(file: Path, record: msgspec.Struct) -> None:
    """Replaces the file atomically, so that a killed process never leaves half of one."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    fresh.replace(file)


class _Begun(msgspec.Struct, frozen=True):
    """commit: of which no pass has ended yet. times: processes that began one. stuck: the watchdog saw the last of them make no progress.
    proven: the last commit of which a pass has ended. since: when the last of them began."""

    commit: str = ""
    times: int = 0
    stuck: bool = False
    proven: str = ""
    since: datetime | None = None


class PassRecord:
    """Whether passes over a commit end. It is written beside the clone, so that one process after the other is not ended for the same
    commit. Thread-safe."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._file = folder / _PASSES
        self._clock = clock
        self._lock = Lock()
        self._begun = _load_begun(self._file)
        self._left = self._begun if self._begun.stuck or self._begun.times >= _MOST_KILLS else _Begun()
        """What earlier processes left behind, while it must not be tried."""

    @property
    def proven(self) -> str:
        return self._begun.proven

    def unfinished(self, commit: str) -> str:
        """Why no pass may be made of this commit; "" if one may."""
        left = self._left
        if not commit or commit != left.commit:
            return ""
        how = "made no progress, until the watchdog ended the process" if left.stuck else "never ended: the process was"
        how = how if left.stuck else f"{how} killed {left.times} times"
        return (
            f"a pass of commit {commit[:12]} {how}; it is skipped until there is a newer commit, or a person asks for another try "
            "with headroom.dev/requestedAt"
        )

    def try_again(self) -> None:
        """A person asks for it, or something was pushed. Each try may end the process, so the wait between two of them doubles."""
        with self._lock:
            left = self._left
            if left.since is None:
                return
            wait = doubled(_FIRST_WAIT, left.times - 1, _LONGEST_WAIT)
            if self._clock.now() >= left.since + wait:
                self._left = _Begun()

    def begins(self, commit: str) -> None:
        """A pass takes this commit. Nothing is written if one has ended already."""
        with self._lock:
            if not commit or commit in (self._begun.proven, self._left.commit):
                return
            times = self._begun.times + 1 if commit == self._begun.commit else 1
            self._save(_Begun(commit, times, proven=self._begun.proven, since=self._clock.now()))

    def stuck(self) -> None:
        with self._lock:
            if self._is_under_way() and not self._begun.stuck:
                self._save(msgspec.structs.replace(self._begun, stuck=True))

    def ended(self) -> None:
        """The pass has ended, well or not: this process survived it."""
        with self._lock:
            if self._is_under_way():
                self._save(_Begun(proven=self._begun.commit))

    def stopped(self) -> None:
        """The process ends because it was asked to, perhaps in the middle of a pass."""
        with self._lock:
            if self._is_under_way() and not self._begun.stuck:
                self._save(_Begun(proven=self._begun.proven))

    def _is_under_way(self) -> bool:
        return bool(self._begun.commit) and self._begun.commit != self._left.commit

    def _save(self, begun: _Begun) -> None:
        self._begun = begun
        with suppress(OSError):  # a full disk must not end a pass; then nothing is remembered
            _replace(self._file, begun)


def _load_begun(file: Path) -> _Begun:
    try:
        begun = msgspec.json.decode(file.read_bytes(), type=_Begun)
    except (OSError, msgspec.MsgspecError):
        return _Begun()
    return begun if begun.since is not None or not begun.commit else _Begun()


Made = TypeVar("Made")


class LatestTree:
    """A `Source` whose `read` returns at once, with the result of the last `poll`. progress: called for everything that Git does
    meanwhile. passes: remembers which commits they are made of. Thread-safe."""

    def __init__(
        self, source: Source, *, progress: Callable[[], None] = lambda: None, passes: PassRecord | None = None
    ) -> None:
        self._source = source
        self._passes = passes
        self._progress = progress
        self._tree: SourceTree | None = None
        self._lock = threading.Lock()
        self._hastened = threading.Event()

    def poll(self) -> bool:
        """Polls the source; returns whether a pass would find something new. A stall or hold that begins or ends counts too."""
        with self._lock:
            if self._hastened.is_set():
                self._hastened.clear()
                self._source.hasten()
            before, self._tree = self._tree, self._read()
            return before is not None and self._tree != before

    def read(self) -> SourceTree:
        """For a pass, which begins."""
        tree = self._tree
        if tree is None:
            with self._lock:
                if self._tree is None:
                    self._tree = self._read()
                tree = self._tree
        if self._passes is not None and tree.revision is not None:
            self._passes.begins(tree.revision.rpartition(":")[2])
        return tree

    def during(self, make: Callable[[], Made]) -> Made:
        """The result of a pass, which reads this source."""
        try:
            return make()
        finally:
            if self._passes is not None:
                self._passes.ended()

    def stuck(self) -> None:
        """The pass under way makes no progress, and the process is about to end."""
        if self._passes is not None:
            self._passes.stuck()

    def _read(self) -> SourceTree:
        with heard_by(self._progress):
            return self._source.read()

    def hasten(self) -> None:
        """Makes the next poll ignore back-offs. Returns at once, even during a poll."""
        self._hastened.set()

    def close(self) -> None:
        if self._passes is not None:
            self._passes.stopped()
        self._source.close()
