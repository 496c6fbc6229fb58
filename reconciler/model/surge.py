"""Promised room against kube-scheduler: which pods may have to wait although their chunks have room."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.refs import ObjectRef, abridged

MOST_TAKERS = 3


@dataclass(frozen=True, slots=True)
class Binding:
    """One pod of a rehearsal. node: where kube-scheduler would bind it; "" where it has to wait."""

    demand: ObjectRef
    node: str


@dataclass(frozen=True, slots=True)
class Wait:
    """The worst order that was tried for one demand.

    waiting: how many of its pods wait, of the `promised` that have room. alone: only its own pods came. takers: other demands whose pods
    are in its room. before: the one demand whose pods have only to come first; None where it takes more than that.
    bindings: each pod of the order, as they came.
    """

    demand: ObjectRef
    waiting: int
    promised: int
    alone: bool
    takers: tuple[ObjectRef, ...]
    before: ObjectRef | None
    bindings: tuple[Binding, ...]

    @property
    def words(self) -> str:
        """`2 of 12 may have to wait when web is scaled up before batch: web's pods take room that only batch's can use`."""
        begin = f"{self.waiting:,} of {self.promised:,} may have to wait"
        name = self.demand.name
        if self.alone:
            return f"{begin} even when nothing but {name} is scaled up: kube-scheduler binds its pods to other nodes than planned"
        if self.before is not None:
            other = self._name(self.before)
            return f"{begin} when {other} is scaled up before {name}: {other}'s pods take room that {name}'s need"
        names = abridged(map(self._name, self.takers), MOST_TAKERS)
        took = (
            f"pods of {names} take room that {name}'s need"
            if names
            else "kube-scheduler binds pods to other nodes than planned"
        )
        return f"{begin} when everything is scaled up at once: {took}"

    def _name(self, other: ObjectRef) -> str:
        return other.name if other.namespace == self.demand.namespace else f"{other.namespace}/{other.name}"
