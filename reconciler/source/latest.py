"""The newest tree of another source, polled independently of the passes that use it.

A poll may take a minute on a slow network; a pass that the cluster asked for must not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from reconciler.model.source import SourceTree
from reconciler.ports import Source
from reconciler.source.child import heard_by


class LatestTree:
    """A `Source` whose `read` answers at once with what the last `poll` brought. progress: told of all that Git does meanwhile.
    Thread-safe."""

    def __init__(self, source: Source, *, progress: Callable[[], None] = lambda: None) -> None:
        self._source = source
        self._progress = progress
        self._tree: SourceTree | None = None
        self._lock = threading.Lock()
        self._hastened = threading.Event()

    def poll(self) -> bool:
        """Polls the source. Whether a pass would find something new; a stall or a hold that begins or ends counts too."""
        with self._lock:
            if self._hastened.is_set():
                self._hastened.clear()
                self._source.hasten()
            before, self._tree = self._tree, self._read()
            return before is not None and self._tree != before

    def read(self) -> SourceTree:
        tree = self._tree
        if tree is not None:
            return tree
        with self._lock:
            if self._tree is None:
                self._tree = self._read()
            return self._tree

    def _read(self) -> SourceTree:
        with heard_by(self._progress):
            return self._source.read()

    def hasten(self) -> None:
        """Answers at once, also while a poll is under way: the next one waits for no back-off."""
        self._hastened.set()

    def close(self) -> None:
        self._source.close()
