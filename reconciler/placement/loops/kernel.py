"""The loops that take most of the time: compiled where that pays off, plain Python elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any
from zlib import crc32

from reconciler.placement.loops import arrays, growth, planned_nodes, sizes
from reconciler.placement.loops.compiling import jit

WORTH_COMPILING = 400
"""From this many batches on, the compiled loops save more time than it takes to load them."""
CHUNKS_WORTH_COMPILING = 4000
"""The same for the number of chunks of one batch times the nodes they may join."""

_PARTS = (
    (
        planned_nodes,
        (
            "allowed",
            "cap_on",
            "fits_in",
            "holds",
            "is_within",
            "set_type",
            "add",
            "add_all",
            "add_found",
            "remove",
            "choose",
        ),
    ),
    (growth, ("other_than", "no_cheaper", "cheapest", "serve")),
    (sizes, ("held", "useful", "mix_costs")),
)
"""In the order in which they call each other."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """See planned_nodes, growth and sizes."""

    add_all: Callable[..., None]
    remove: Callable[..., None]
    choose: Callable[..., int]
    cheapest: Callable[..., tuple[int, int]]
    serve: Callable[..., tuple[int, int, int]]
    held: Callable[..., None]
    useful: Callable[..., int]
    mix_costs: Callable[..., None]


@lru_cache(maxsize=1)
def compiled() -> Kernel:
    """The loops compiled; plain where numba is absent.

    The compiled code is cached beside the source. Where that folder is not writable, each process compiles again.
    """
    jitted = jit()
    if jitted is None:
        return plain()
    stamp = _stamp()
    made: dict[str, Any] = {}
    for file, parts in _PARTS:
        names = {**vars(file), **made}
        for name in parts:
            names[name] = made[name] = jitted(FunctionType(names[name].__code__, names, f"{name}_{stamp:08x}"))
    return Kernel(*(made[name] for name in Kernel.__slots__))


def _stamp() -> int:
    """A checksum of all loops. numba caches a loop by its own name and file, and does not notice changes of loops it calls."""
    numbers = sorted((name, value) for name, value in vars(arrays).items() if isinstance(value, int | float))
    codes = [vars(file)[name].__code__ for file, parts in _PARTS for name in parts]
    return crc32(repr((numbers, [(code.co_code, code.co_consts, code.co_names) for code in codes])).encode())


@lru_cache(maxsize=1)
def plain() -> Kernel:
    """The loops as plain Python, for small placements, which are done before compiled ones would be loaded."""
    names = vars(planned_nodes) | vars(growth) | vars(sizes)
    return Kernel(*(names[name] for name in Kernel.__slots__))
