"""Whether loops are being compiled now, which may take many seconds the first time on a machine."""

from __future__ import annotations

import sys

from reconciler.placement.loops import planned_nodes


class Compilation:
    """Listens to numba once that is loaded. depth: how many functions are being compiled, each because of the one before."""

    def __init__(self) -> None:
        self.depth = 0
        self._listens = False

    def is_under_way(self) -> bool:
        if not self._listens and hasattr(sys.modules.get("numba"), "njit"):
            self._listen()
        return self.depth > 0

    def _listen(self) -> None:
        from numba.core import event

        compilation = self

        class Watch(event.Listener):
            def on_start(self, _event: object) -> None:
                compilation.depth += 1

            def on_end(self, _event: object) -> None:
                compilation.depth -= 1

        event.register("numba:compile", Watch())  # type: ignore[no-untyped-call]
        self._listens = True


def is_kept() -> bool:
    """Whether compiled code is kept for the next process, which needs a writable folder."""
    from numba.core.caching import FunctionCache

    try:
        FunctionCache(planned_nodes.allowed)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return False
    return True
