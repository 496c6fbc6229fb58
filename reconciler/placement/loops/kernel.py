"""The loops that take most of the time: compiled where that pays off, plain Python elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from reconciler.placement.loops import growth, planned_nodes, sizes
from reconciler.placement.loops.compiling import linked

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
    """The loops compiled; plain where numba is absent."""
    made = linked([(vars(file), names) for file, names in _PARTS])
    return plain() if made is None else Kernel(*(made[name] for name in Kernel.__slots__))


@lru_cache(maxsize=1)
def plain() -> Kernel:
    """The loops as plain Python, for small placements, which are done before compiled ones would be loaded."""
    names = vars(planned_nodes) | vars(growth) | vars(sizes)
    return Kernel(*(names[name] for name in Kernel.__slots__))
