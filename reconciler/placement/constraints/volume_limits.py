"""How many volumes of each CSI driver a new node will be able to attach, judged by the nodes that exist.

A driver reports its limit in the node's CSINode once the node is up. The limit depends on the instance type and the driver's
settings. So a new node has the limit of nodes of its type, those in its NodePool if there are any. Without nodes of its type it has
the lowest limit in its NodePool. Where nodes differ, the lowest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.amounts import ATTACHABLE
from reconciler.placement.nodes.machines import sample_nodes
from reconciler.placement.offers.pool_offers import Observed, PoolType

_UNLIMITED = 2**40


class VolumesToCome:
    """limits: of each NodePool and type, by driver; plenty where nothing is known. assumptions: a sentence for each guess."""

    def __init__(self, view: ClusterView, pool_types: Sequence[PoolType], drivers: Sequence[str]) -> None:
        self._seen: dict[tuple[str, str, str], int] = {}
        said = {item.node: dict(item.limits) for item in view.storage.limits}
        for example in sample_nodes(view):
            for driver, limit in said.get(example.name, {}).items():
                for pool, instance_type in (
                    (example.pool, example.instance_type),
                    ("", example.instance_type),
                    (example.pool, ""),
                ):
                    key = (driver, pool, instance_type)
                    self._seen[key] = min(self._seen.get(key, limit), limit)
        self._guesses: set[str] = set()
        self.limits: Observed = {
            instance_type: Resources.of(
                (ATTACHABLE + driver, self._limit(driver, *instance_type)) for driver in drivers
            )
            for instance_type in pool_types
        }
        self.assumptions = tuple(sorted(self._guesses))

    def _limit(self, driver: str, pool: str, instance_type: str) -> int:
        of_the_type = self._seen.get((driver, pool, instance_type), self._seen.get((driver, "", instance_type)))
        if of_the_type is not None:
            return of_the_type
        least = self._seen.get((driver, pool, ""))
        if least is None:
            self._guesses.add(
                f"how many volumes of {driver} a new node of NodePool {pool} can have attached is not known where no node of its "
                "type is up: as many as its pods need"
            )
            return _UNLIMITED
        self._guesses.add(
            f"how many volumes of {driver} a new node of NodePool {pool} can have attached is not known where no node of its type "
            f"is up: no more than {least}, the least on the nodes it has"
        )
        return least


def plenty(drivers: Iterable[str]) -> Resources:
    return Resources.of((ATTACHABLE + driver, _UNLIMITED) for driver in drivers)
