"""Storage of generated worlds: claims that are bound, waiting or missing, shared, or made for one pod."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.attachments import NO_PROVISIONER, PersistentVolume, Storage, StorageClass, VolumeClaim
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.requirements import Operator, Requirement
from tests.builders import one_of
from tests.properties.sampling import sampled_from

DISKS, FILES = "disk.example.com", "files.example.com"
NAMES = ("data-0", "data-1", "data-2", "data-3")
MISSING = "missing"
OWNERS = ("pod-0", "pod-1", "pod-2")
"""Pods for whose ephemeral volumes claims were made; of other pods they are yet to come."""
NAMESPACES = ("shop", "bank")


def _in(key: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((one_of(key, *values),))


TOPOLOGIES = (_in(ZONE_LABEL, "zone-a"), _in(ZONE_LABEL, "zone-c", "zone-z"))
CLASSES = (
    StorageClass("at-once", DISKS),
    StorageClass("disks", DISKS, waits=True, topologies=TOPOLOGIES),
    StorageClass("files", FILES, waits=True, default=True),
    StorageClass("ready", NO_PROVISIONER, waits=True),
)
REACHES = (
    (),
    (),
    (_in(ZONE_LABEL, "zone-a"),),
    (_in(ZONE_LABEL, "zone-b"), _in(ZONE_LABEL, "zone-c")),
    (_in(ZONE_LABEL, "zone-b", "zone-c"),),
    (NodeSelectorTerm((Requirement(ZONE_LABEL, Operator.NOT_IN, ("zone-a",)),)),),
    (_in(HOSTNAME_LABEL, "node-0"),),
    (NodeSelectorTerm(fields=(one_of("metadata.name", "node-1"),)),),
    (NodeSelectorTerm(),),
)
"""Node affinities of volumes; the last holds nowhere, the first four in some zone."""
SOUND = ("bound", "bound", "waiting")
ANY = ("bound", "bound", "bound", "waiting", "waiting", "odd", "gone")
"""States of claims: those that a pod can be placed with, and all of them."""


def _volume(draw: st.DrawFn, name: str, states: tuple[str, ...] = ANY) -> PersistentVolume:
    return PersistentVolume(
        name,
        terms=draw(sampled_from(REACHES[:4] if states == SOUND else REACHES)),
    )


def _claim(
    draw: st.DrawFn, namespace: str, name: str, states: tuple[str, ...]
) -> tuple[VolumeClaim, PersistentVolume | None]:
    """A claim, and the volume it is bound to."""
    draw(st.integers(0, 4))  # for nothing any more, but without it the recorded worlds would be others
    plain = VolumeClaim(namespace, name, storage_class="disks")
    bound = replace(plain, volume=f"pv-{namespace}-{name}", bound=True)
    volume = _volume(draw, bound.volume, states)
    waiting = tuple(replace(plain, storage_class=item) for item in ("disks", "disks", "files", None))
    being_made = replace(plain, selected_node=draw(sampled_from(("node-0", "node-1", "gone"))))
    odd = (
        replace(bound, bound=False),
        *(replace(plain, storage_class=item) for item in ("at-once", "ready", "gone", "")),
    )
    match draw(sampled_from(states)):
        case "bound":
            return bound, volume
        case "waiting":
            return draw(sampled_from((*waiting, *waiting, being_made))), None
        case "odd":
            return draw(sampled_from(odd)), None
        case _:
            return (bound, None) if draw(st.booleans()) else (plain, None)


def ephemeral_name(uid: str) -> str:
    return f"{uid}-scratch"


@st.composite
def storages(draw: st.DrawFn) -> Storage:
    states = draw(sampled_from((SOUND, SOUND, SOUND, ANY)))
    drawn = [
        _claim(draw, namespace, name, states)
        for namespace in NAMESPACES
        for name in (*NAMES, *map(ephemeral_name, OWNERS))
    ]
    return Storage(
        tuple(sorted((volume for _, volume in drawn if volume is not None), key=lambda item: item.name)),
        tuple(sorted((claim for claim, _ in drawn), key=lambda item: (item.namespace, item.name))),
        CLASSES,
    )


def claims_of_a_pod() -> st.SearchStrategy[tuple[str, ...]]:
    """Several pods often have the first one, and one that was made for a pod may have more users."""
    one = sampled_from((NAMES[0], *NAMES)).map(lambda name: (name,))
    names = (*NAMES, *NAMES, *NAMES, MISSING, ephemeral_name(OWNERS[0]))
    several = st.lists(sampled_from(names), min_size=1, max_size=3, unique=True).map(tuple)
    return st.one_of(st.just(()), one, one, one, several)


@st.composite
def with_volumes(draw: st.DrawFn, plain: PodShape, uid: str) -> PodShape:
    """The shape of the pod of that UID with volumes, some of which are its own while it lives."""
    named = draw(claims_of_a_pod())
    own = draw(sampled_from(((), (), (ephemeral_name(uid),))))
    return replace(plain, volume_claims=tuple(sorted({*named, *own})))
