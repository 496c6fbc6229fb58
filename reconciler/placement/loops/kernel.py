"""The loops that most time goes to, compiled where that pays, and as they are written elsewhere."""

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
"""Batches from which on loading the compiled loops takes less time than they save."""
CHUNKS_WORTH_COMPILING = 4000
"""Chunks of one batch times nodes that they may join, from which on the same holds."""

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
    """The loops compiled, or as they are where numba is absent.

    What was compiled is kept beside the code, or, where nothing can be written there, compiled anew by each process.
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
    """Of all loops together: numba keeps what it compiled by a loop's own name and file, and knows nothing of those it calls."""
    numbers = sorted((name, value) for name, value in vars(arrays).items() if isinstance(value, int | float))
    codes = [vars(file)[name].__code__ for file, parts in _PARTS for name in parts]
    return crc32(repr((numbers, [(code.co_code, code.co_consts, code.co_names) for code in codes])).encode())


@lru_cache(maxsize=1)
def plain() -> Kernel:
    """The loops as they are written: a small placement is done before compiled ones are loaded."""
    names = vars(planned_nodes) | vars(growth) | vars(sizes)
    return Kernel(*(names[name] for name in Kernel.__slots__))
