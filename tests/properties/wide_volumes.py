"""Storage of generated worlds: claims that are bound, waiting, lost or missing, volumes that lie ready, and nodes that attach only
so many. Used by wide_worlds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from reconciler.model.pods import NodeSelectorTerm
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.storage import (
    NO_PROVISIONER,
    PersistentVolume,
    Storage,
    StorageClass,
    VolumeClaim,
    VolumeLimits,
)

DISKS, FILES = "disk.example.com", "files.example.com"
NAMES = ("data-0", "data-1", "data-2", "data-3")
MISSING = "missing"
NAMESPACES = ("shop", "bank")


def _in(key: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(key, Operator.IN, values),))


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
    (NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("node-1",)),)),),
    (NodeSelectorTerm(),),
)
"""Node affinities of volumes; the last holds nowhere."""
LABELS = ((), (), (), ((ZONE_LABEL, "zone-b"),), ((ZONE_LABEL, "zone-a__zone-c"),))
MODES = (("ReadWriteOnce",), ("ReadWriteOnce",), ("ReadWriteMany",), ("ReadWriteOncePod",))


def _volume(draw: st.DrawFn, name: str, modes: tuple[str, ...], storage_class: str) -> PersistentVolume:
    return PersistentVolume(
        name,
        terms=draw(st.sampled_from(REACHES)),
        labels=draw(st.sampled_from(LABELS)),
        storage_class=storage_class,
        capacity=draw(st.sampled_from((10, 100))),
        access_modes=modes,
        driver=draw(st.sampled_from((DISKS, DISKS, FILES, ""))),
        handle=draw(st.sampled_from(("", "", "one-and-the-same"))),
    )


def _claim(draw: st.DrawFn, namespace: str, name: str) -> tuple[VolumeClaim, PersistentVolume | None]:
    """A claim, and the volume it is bound to."""
    modes = draw(st.sampled_from(MODES))
    plain = VolumeClaim(namespace, name, storage_class="disks", requested=50, access_modes=modes)
    bound = VolumeClaim(
        namespace, name, f"pv-{namespace}-{name}", bound=True, storage_class="disks", access_modes=modes
    )
    volume = _volume(draw, bound.volume, modes, "disks")
    waiting = tuple(
        VolumeClaim(namespace, name, storage_class=item, requested=50, access_modes=modes)
        for item in ("disks", "files", "ready", "ready", None)
    )
    being_made = replace(waiting[0], selected_node=draw(st.sampled_from(("node-0", "node-1", "gone"))))
    odd = (
        VolumeClaim(namespace, name, bound.volume, storage_class="disks", access_modes=modes),
        VolumeClaim(namespace, name, storage_class="disks", lost=True, access_modes=modes),
        VolumeClaim(namespace, name, storage_class="disks", deleting=True, access_modes=modes),
        *(
            VolumeClaim(namespace, name, storage_class=item, requested=50, access_modes=modes)
            for item in ("at-once", "gone", "")
        ),
    )
    match draw(st.sampled_from(("bound", "bound", "bound", "waiting", "waiting", "odd", "gone"))):
        case "bound":
            return bound, volume
        case "waiting":
            return draw(st.sampled_from((*waiting, *waiting, being_made))), None
        case "odd":
            return draw(st.sampled_from(odd)), None
        case _:
            return (bound, None) if draw(st.booleans()) else (plain, None)


@st.composite
def storages(draw: st.DrawFn, nodes: tuple[str, ...]) -> Storage:
    """nodes: names of those that may limit what they attach."""
    claims: list[VolumeClaim] = []
    volumes: list[PersistentVolume] = []
    for namespace in NAMESPACES:
        for name in NAMES:
            claim, volume = _claim(draw, namespace, name)
            claims.append(claim)
            volumes += [volume] if volume is not None else []
    for index in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(("ready", "ready", "disks")))
        volumes.append(_volume(draw, f"ready-{index}", draw(st.sampled_from(MODES)), kind))
    topology = draw(st.sampled_from(((), ((DISKS, (ZONE_LABEL,)), (FILES, ())), ((DISKS, (HOSTNAME_LABEL,)),))))
    limits = tuple(
        VolumeLimits(name, ((DISKS, draw(st.integers(0, 2))), (FILES, draw(st.integers(1, 3)))), topology)
        for name in nodes
        if draw(st.booleans())
    )
    return Storage(
        tuple(sorted(volumes, key=lambda item: item.name)),
        tuple(sorted(claims, key=lambda item: (item.namespace, item.name))),
        CLASSES,
        limits,
    )


def claims_of_a_pod() -> st.SearchStrategy[tuple[str, ...]]:
    one = st.sampled_from(NAMES).map(lambda name: (name,))
    several = st.lists(st.sampled_from((*NAMES, MISSING)), min_size=1, max_size=3, unique=True).map(tuple)
    return st.one_of(st.just(()), one, one, several)
