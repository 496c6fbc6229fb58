"""The loops that take most of the time: compiled by numba where that pays off, plain Python elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pickle import UnpicklingError
from types import FunctionType, ModuleType
from typing import Any, Literal
from zlib import crc32

from reconciler.placement import arrays
from reconciler.placement.loops import planned_nodes, walk

WORTH_COMPILING = 400
"""From this many batches on, the compiled loops save more time than it takes to load them."""
CHUNKS_WORTH_COMPILING = 4000
"""The same for the number of chunks of one batch times the nodes they may join."""

_INLINED = frozenset({"allowed", "cap_on", "fits_in", "holds", "is_within", "join_of", "is_sold", "net"})
"""Loops that are compiled into those that call them: a call with arrays takes longer than they do."""

not_cached: list[str] = []
"""The loops that no cache had, so that this process compiles them: for messages, since that takes half a minute."""


def jit() -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """A decorator that compiles a loop at its first call; None where numba is absent, or told to compile nothing (NUMBA_DISABLE_JIT)."""
    try:
        from numba import config, njit
    except ImportError:
        return None
    if getattr(config, "DISABLE_JIT", False):  # its module sets the names of environment variables at run time
        return None

    def jitted(loop: Callable[..., Any]) -> Callable[..., Any]:
        how: Literal["always", "never"] = "always" if loop.__name__.rpartition("_")[0] in _INLINED else "never"
        try:
            found: Any = njit(cache=True, nogil=True, inline=how)(loop)
        except RuntimeError:  # no folder for the cache is writable
            found = njit(cache=False, nogil=True, inline=how)(loop)
            not_cached.append(loop.__name__)
        else:
            found._cache.load_overload = _whole(found._cache.load_overload, loop.__name__)  # noqa: SLF001 - numba has no setting for it
        compiled: Callable[..., Any] = found
        return compiled

    return jitted


def _whole(load: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Makes a truncated cache file count as missing, so that the loop is compiled and written again."""

    def load_whole(*arguments: Any) -> Any:
        try:
            found = load(*arguments)
        except (UnpicklingError, EOFError, ValueError, AttributeError, ImportError, IndexError):
            found = None
        if found is None:
            not_cached.append(name)
        return found

    return load_whole


def linked(parts: Sequence[tuple[Mapping[str, Any], Sequence[str]]]) -> dict[str, Any] | None:
    """Loops of several files compiled, each for the others to call; None where numba is absent.

    parts: the names of a file, and those of its loops, in the order in which they call each other. The compiled code is cached beside the
    source. Where that folder is not writable, each process compiles again.
    """
    jitted = jit()
    if jitted is None:
        return None
    stamp, made = _stamp(parts), dict[str, Any]()
    for file, names in parts:
        seen = {**file, **made}
        for name in names:
            loop = FunctionType(file[name].__code__, seen)
            # numba goes by the qualified name, which is otherwise the code's own.
            loop.__name__ = loop.__qualname__ = f"{name}_{stamp:08x}"
            seen[name] = made[name] = jitted(loop)
    return made


def _stamp(parts: Sequence[tuple[Mapping[str, Any], Sequence[str]]]) -> int:
    """A checksum of all loops. numba caches a loop by its own name and file, and does not notice changes of loops it calls."""
    numbers = sorted(
        (name, value)
        for names in (vars(arrays), *(file for file, _ in parts))
        for name, value in names.items()
        if isinstance(value, int | float) and name.isupper()
    )
    codes = [file[name].__code__ for file, names in parts for name in names]
    return crc32(repr((numbers, [(code.co_code, code.co_consts, code.co_names) for code in codes])).encode())


def _loops_of(file: ModuleType) -> tuple[Mapping[str, Any], list[str]]:
    """All functions that the file defines. Each stands below those that it calls."""
    names = vars(file)
    own = [name for name, item in names.items() if isinstance(item, FunctionType) and item.__module__ == file.__name__]
    return names, own


@dataclass(frozen=True, slots=True)
class Kernel:
    """See `planned_nodes.py` and `walk.py`."""

    add: Callable[..., None]
    choose: Callable[..., int]
    cheapest: Callable[..., tuple[int, int, int]]
    held: Callable[..., None]
    useful: Callable[..., int]
    mix_costs: Callable[..., None]
    mix_of: Callable[..., None]
    walk: Callable[..., tuple[int, int]]


@lru_cache(maxsize=1)
def compiled() -> Kernel:
    """The loops compiled; plain where numba is absent."""
    made = linked([_loops_of(planned_nodes), _loops_of(walk)])
    return plain() if made is None else Kernel(*(made[name] for name in Kernel.__slots__))


@lru_cache(maxsize=1)
def plain() -> Kernel:
    """The loops as plain Python, for small placements, which are done before compiled ones would be loaded."""
    written = vars(planned_nodes) | vars(walk)
    return Kernel(*(written[name] for name in Kernel.__slots__))
