"""Storage of generated worlds: claims that are bound, waiting, lost or missing, shared, or made for one pod, volumes that lie ready,
and nodes that attach only so many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.attachments import (
    NO_PROVISIONER,
    PersistentVolume,
    Storage,
    StorageClass,
    VolumeClaim,
    VolumeLimits,
)
from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from reconciler.model.placement import Unplaced
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.requirements import Operator, Requirement
from tests.properties.sampling import sampled_from

DISKS, FILES = "disk.example.com", "files.example.com"
NAMES = ("data-0", "data-1", "data-2", "data-3")
MISSING = "missing"
OWNERS = ("pod-0", "pod-1", "pod-2")
"""UIDs of pods for whose ephemeral volumes claims were made; of other pods they are yet to come."""
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
"""Node affinities of volumes; the last holds nowhere, the first four in some zone."""
SOUND = ("bound", "bound", "waiting")
ANY = ("bound", "bound", "bound", "waiting", "waiting", "odd", "gone")
"""States of claims: those that a pod can be placed with, and all of them."""
LABELS = ((), (), (), ((ZONE_LABEL, "zone-b"),), ((ZONE_LABEL, "zone-a__zone-c"),))
MODES = (("ReadWriteOnce",), ("ReadWriteOnce",), ("ReadWriteMany",), ("ReadWriteMany",), ("ReadWriteOncePod",))


def _volume(
    draw: st.DrawFn, name: str, modes: tuple[str, ...], storage_class: str, states: tuple[str, ...] = ANY
) -> PersistentVolume:
    return PersistentVolume(
        name,
        terms=draw(sampled_from(REACHES[:4] if states == SOUND else REACHES)),
        labels=draw(sampled_from(LABELS)),
        storage_class=storage_class,
        capacity=draw(sampled_from((10, 100))),
        access_modes=modes,
        driver=draw(sampled_from((DISKS, DISKS, FILES, ""))),
        handle=draw(sampled_from(("", "", "one-and-the-same"))),
    )


def _claim(
    draw: st.DrawFn, namespace: str, name: str, states: tuple[str, ...]
) -> tuple[VolumeClaim, PersistentVolume | None]:
    """A claim, and the volume it is bound to."""
    modes = draw(sampled_from(MODES))
    plain = VolumeClaim(namespace, name, storage_class="disks", requested=50, access_modes=modes)
    bound = VolumeClaim(
        namespace, name, f"pv-{namespace}-{name}", bound=True, storage_class="disks", access_modes=modes
    )
    volume = _volume(draw, bound.volume, modes, "disks", states)
    waiting = tuple(
        VolumeClaim(namespace, name, storage_class=item, requested=50, access_modes=modes)
        for item in ("disks", "disks", "files", "ready", None)
    )
    being_made = replace(waiting[0], selected_node=draw(sampled_from(("node-0", "node-1", "gone"))))
    odd = (
        VolumeClaim(namespace, name, bound.volume, storage_class="disks", access_modes=modes),
        VolumeClaim(namespace, name, storage_class="disks", lost=True, access_modes=modes),
        VolumeClaim(namespace, name, storage_class="disks", deleting=True, access_modes=modes),
        *(
            VolumeClaim(namespace, name, storage_class=item, requested=50, access_modes=modes)
            for item in ("at-once", "gone", "")
        ),
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


def _ephemeral_claim(
    draw: st.DrawFn, namespace: str, uid: str, states: tuple[str, ...]
) -> tuple[VolumeClaim, PersistentVolume | None]:
    """Made for the pod, nearly always; else one of that name stood in the way."""
    controller = draw(sampled_from((*[uid] * 8, "another", "")))
    claim, volume = _claim(draw, namespace, ephemeral_name(uid), states)
    return replace(claim, controller=controller), volume


@st.composite
def storages(draw: st.DrawFn, nodes: tuple[str, ...]) -> Storage:
    """nodes: names of those that may limit what they attach."""
    states = draw(sampled_from((SOUND, SOUND, SOUND, ANY)))
    claims: list[VolumeClaim] = []
    volumes: list[PersistentVolume] = []
    for namespace in NAMESPACES:
        drawn = [_claim(draw, namespace, name, states) for name in NAMES]
        drawn += [_ephemeral_claim(draw, namespace, uid, states) for uid in OWNERS]
        claims += [claim for claim, _ in drawn]
        volumes += [volume for _, volume in drawn if volume is not None]
    for index in range(draw(st.integers(0, 2))):
        kind = draw(sampled_from(("ready", "ready", "disks")))
        volumes.append(_volume(draw, f"ready-{index}", draw(sampled_from(MODES)), kind))
    limits = tuple(
        VolumeLimits(name, ((DISKS, draw(st.integers(0, 3))), (FILES, draw(st.integers(1, 4)))))
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
    """Several pods often have the first one, and one that was made for a pod may have more users."""
    one = sampled_from((NAMES[0], *NAMES)).map(lambda name: (name,))
    names = (*NAMES, *NAMES, *NAMES, MISSING, ephemeral_name(OWNERS[0]))
    several = st.lists(sampled_from(names), min_size=1, max_size=3, unique=True).map(tuple)
    return st.one_of(st.just(()), one, one, one, several)


@st.composite
def with_volumes(draw: st.DrawFn, plain: PodShape, uid: str) -> PodShape:
    """The shape of the pod of that UID with volumes, some of which are its own while it lives."""
    named = draw(claims_of_a_pod())
    own = draw(sampled_from(((), (), ((ephemeral_name(uid), uid),))))
    return replace(plain, volume_claims=tuple(sorted({*named, *(name for name, _ in own)})), ephemeral_claims=own)


def with_own_volumes(storage: Storage, demands: Iterable[Demand]) -> tuple[Storage, tuple[Demand, ...]]:
    """The same with copies of its claims and their volumes for each demand: as if nobody shared any."""
    claims = {(item.namespace, item.name): item for item in storage.claims}
    volumes = {item.name: item for item in storage.volumes}
    copies: list[VolumeClaim] = []
    changed = []
    for number, demand in enumerate(demands):
        made: dict[str, PersistentVolume] = {}
        for key in sorted(
            {(group.shape.namespace, name) for group in demand.groups for name in group.shape.volume_claims}
        ):
            if key in claims:
                claim = claims[key]
                copies.append(
                    replace(claim, name=f"{number}-{claim.name}", volume=claim.volume and f"{number}-{claim.volume}")
                )
                if claim.volume in volumes:
                    volume = volumes[claim.volume]
                    handle = volume.handle and f"{number}-{volume.handle}"
                    made[volume.name] = replace(volume, name=f"{number}-{volume.name}", handle=handle)
        volumes |= {item.name: item for item in made.values()}
        changed.append(demand.with_shapes(lambda group, number=number: _renamed(group.shape, number)))  # type: ignore[misc]
    return replace(storage, claims=(*storage.claims, *copies), volumes=tuple(volumes.values())), tuple(changed)


def _renamed(shape: PodShape, number: int) -> PodShape:
    return replace(
        shape,
        volume_claims=tuple(f"{number}-{name}" for name in shape.volume_claims),
        ephemeral_claims=tuple((f"{number}-{name}", uid) for name, uid in shape.ephemeral_claims),
    )


def waits_for_the_first(missing: Unplaced) -> bool:
    """Left out since its ReadWriteOncePod claim goes to another pod, which may find no node itself."""
    return any("is ReadWriteOncePod and another pod uses it" in reason.example for reason in missing.reasons)
