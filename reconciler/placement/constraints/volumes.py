"""Volumes of pods, judged before anything is placed: where they allow a pod to be, or the reason why it can be nowhere.

They become node requirements of the pods' shapes. Judged as kube-scheduler's plugin VolumeBinding does. A bound
volume restricts the pod to the volume's node affinity. A claim with WaitForFirstConsumer restricts it to where its class may provision a
volume. Every other claim must be bound first. How many volumes a node attaches is not judged, nor is which pods may share one, nor zone labels
of volumes, which have their node affinity beside them since Kubernetes 1.10. Resource claims (Dynamic Resource Allocation), which chunks may have too, are not judged either: no node takes their pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.attachments import NO_PROVISIONER, PersistentVolume, VolumeClaim
from reconciler.model.pods import CLAIMS_NOT_JUDGED, NodeSelectorTerm, PodShape
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.phrases import place_words
from reconciler.placement.problem import Problem
from reconciler.placement.requirements import Requirements

_MOST_ALTERNATIVES = 256
ANYWHERE = (NodeSelectorTerm(),)
NOT_JUDGED = "how many volumes a node can attach, and which pods may share one, is not judged"


class Obstacle(Exception):  # noqa: N818 - a fact about a pod, not a fault
    """Why a claim keeps its pod off every node."""


def with_volumes(problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """The same problem with volumes as requirements, and what was not judged."""
    has_volumes = any(group.shape.volume_claims for demand in problem.demands for group in demand.groups)
    judge = _Judge(problem)
    demands = [demand.with_shapes(lambda group: judge.shape(group.shape)) for demand in problem.demands]
    return replace(problem, demands=demands), (NOT_JUDGED,) if has_volumes else ()


class _Judge:
    """Judges shapes with claims, by the cluster's storage."""

    def __init__(self, problem: Problem) -> None:
        storage = problem.view.storage
        self._claims = {(claim.namespace, claim.name): claim for claim in storage.claims}
        self._volumes = {volume.name: volume for volume in storage.volumes}
        self._classes = {item.name: item for item in storage.classes}
        self._default = max((item.name for item in storage.classes if item.default), default="")
        self._judged: dict[int, PodShape] = {}
        """By identity of the shape, which its demand keeps alive."""

    def shape(self, shape: PodShape) -> PodShape:
        """The shape with its claims replaced by where their volumes can be."""
        if shape.claims_devices:
            return replace(shape, obstacle=f"its pod names {CLAIMS_NOT_JUDGED}", volume_claims=())
        if not shape.volume_claims:
            return shape
        if id(shape) not in self._judged:
            self._judged[id(shape)] = self._placed(shape)
        return self._judged[id(shape)]

    def _placed(self, shape: PodShape) -> PodShape:
        try:
            by_claim = {
                f"PersistentVolumeClaim/{shape.namespace}/{name}": self._places(shape.namespace, name)
                for name in shape.volume_claims
            }
            places = _together(by_claim)
        except Obstacle as obstacle:
            return replace(shape, obstacle=str(obstacle), volume_claims=())
        return replace(
            shape,
            attachment_terms=() if NodeSelectorTerm() in places else tuple(dict.fromkeys(places)),
            attachment_places=tuple(
                (claim, found) for claim, found in by_claim.items() if NodeSelectorTerm() not in found
            ),
            volume_claims=(),
        )

    def _places(self, namespace: str, name: str) -> tuple[NodeSelectorTerm, ...]:
        """Alternatives, of which a node must meet one. Raises `Obstacle` where there is none."""
        claim = self._claims.get((namespace, name))
        if claim is None:
            raise Obstacle(f"PersistentVolumeClaim/{namespace}/{name} does not exist")
        if not claim.volume:
            return self._unbound(claim)
        if not claim.bound:
            raise Obstacle(f"{claim} is not bound to volume {claim.volume} yet")
        volume = self._volumes.get(claim.volume)
        if volume is None:
            raise Obstacle(f"{claim} is bound to volume {claim.volume}, which does not exist")
        places = _places_of(volume)
        if not places:
            raise Obstacle(f"volume {volume.name} has a node affinity that no node meets")
        return places

    def _unbound(self, claim: VolumeClaim) -> tuple[NodeSelectorTerm, ...]:
        name = self._default if claim.storage_class is None else claim.storage_class
        if not name:
            raise Obstacle(f"{claim} is not bound and names no storage class")
        found = self._classes.get(name)
        if found is None:
            raise Obstacle(f"{claim}: there is no storage class {name}")
        if not found.waits:
            raise Obstacle(f"{claim} is not bound yet, and its storage class {name} binds before pods are placed")
        if found.provisioner == NO_PROVISIONER:
            raise Obstacle(f"{claim} waits for a volume that somebody made for storage class {name}: it is not judged")
        if not claim.selected_node:
            return found.topologies or ANYWHERE
        # Until the volume exists, kube-scheduler keeps every pod of the claim on the node it selected for the first.
        there = (Requirement("metadata.name", Operator.IN, (claim.selected_node,)),)
        return tuple(NodeSelectorTerm(term.expressions, there) for term in found.topologies or ANYWHERE)


def _places_of(volume: PersistentVolume) -> tuple[NodeSelectorTerm, ...]:
    """The volume's node affinity as alternatives; () for a volume that no node can reach."""
    terms = tuple(term for term in volume.terms if term.expressions or term.fields)
    return terms if volume.terms else ANYWHERE


def _together(by_claim: Mapping[str, tuple[NodeSelectorTerm, ...]]) -> tuple[NodeSelectorTerm, ...]:
    """Where all of the claims can be used. Raises `Obstacle` where that is nowhere."""
    together: tuple[NodeSelectorTerm, ...] = ANYWHERE
    for places in by_claim.values():
        together = tuple(_joined(together, places))[:_MOST_ALTERNATIVES]
        if not together:
            where = "; ".join(f"{claim} {words}" for claim, found in by_claim.items() if (words := place_words(found)))
            raise Obstacle(f"its volumes are in places that have no node in common: {where}")
    return together


def _joined(places: Iterable[NodeSelectorTerm], more: Iterable[NodeSelectorTerm]) -> Iterable[NodeSelectorTerm]:
    """Every pair of alternatives joined, without pairs that contradict each other."""
    others = list(more)
    for place in places:
        for other in others:
            if Requirements.of(place.expressions).conflict(Requirements.of(other.expressions)) is None:
                expressions = dict.fromkeys((*place.expressions, *other.expressions))
                yield NodeSelectorTerm(tuple(expressions), tuple(dict.fromkeys((*place.fields, *other.fields))))
