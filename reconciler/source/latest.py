"""The newest tree of another source, polled independently of the passes that use it.

A poll may take a minute on a slow network, and a pass for a change of the cluster must not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from reconciler.model.source import SourceTree
from reconciler.ports import Source
from reconciler.source.child import heard_by
from reconciler.source.state import PassRecord

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
