"""What is made for pods of generated worlds once they are there, as documents for a real API server. Used by test_real_scheduler.

No controller runs beside the API server: the claims of ephemeral volumes are made here, as soon as a pod has its UID. In the model the claim of a pod's ephemeral volume has a name of its group's; in the
cluster it gets the name that Kubernetes gives it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reconciler.model.attachments import PersistentVolume, Storage, VolumeClaim
from reconciler.model.demand import ChunkGroup
from reconciler.model.pods import PodShape
from reconciler.model.view import ClusterView
from tests.e2e.world_documents import MADE_VOLUME
from tests.e2e.world_volumes import CLASSES, claim_document, volume_document, worlds_with_volumes
from tests.properties.wide_volumes import DISKS, LABELS, REACHES
from tests.unit.placement.worlds import World

_NAMESPACE = "shop"
_ANOTHER = "another"
FEW = 3

Document = dict[str, Any]


@st.composite
def worlds_with_claims(draw: st.DrawFn) -> World:
    """Half of them have ephemeral volumes."""
    world = _with_single_pods(draw(worlds_with_volumes()))
    return draw(_with_ephemeral_volumes(world)) if draw(st.booleans()) else world


def _with_single_pods(world: World) -> World:
    """Few pods are one pod."""
    demands = [
        replace(
            item, groups=tuple(replace(group, count=1 if group.count <= FEW else group.count) for group in item.groups)
        )
        for item in world.demands
    ]
    counted = (replace(item, desired=sum(group.count for group in item.groups)) for item in demands)
    return replace(world, demands=tuple(counted))


@st.composite
def _with_ephemeral_volumes(draw: st.DrawFn, world: World) -> World:
    """Of single pods, since the claim is that pod's. It may be missing, or another's."""
    volumes: list[PersistentVolume] = []
    claims: list[VolumeClaim] = []

    def changed(group: ChunkGroup, name: str) -> ChunkGroup:
        if group.count != 1 or draw(st.integers(0, 3)) == 0:
            return group
        state = draw(st.sampled_from([*["made"] * 8, "another's", "missing"]))
        if state != "missing":
            volume = PersistentVolume(
                f"pv-{name}",
                terms=draw(st.sampled_from((*REACHES[:4] * 3, *REACHES))),
                labels=draw(st.sampled_from(LABELS)),
                storage_class="disks",
                capacity=2**30,
                access_modes=("ReadWriteMany",),
                claim=(_NAMESPACE, name),
                driver=DISKS,
            )
            controller = name if state == "made" else _ANOTHER
            volumes.append(volume)
            claims.append(
                VolumeClaim(_NAMESPACE, name, volume.name, bound=True, storage_class="disks", controller=controller)
            )
        shape = group.shape
        return replace(
            group,
            shape=replace(
                shape, volume_claims=tuple(sorted((*shape.volume_claims, name))), ephemeral_claims=((name, name),)
            ),
        )

    demands = tuple(
        replace(
            item,
            groups=tuple(
                changed(group, f"{item.ref.name}-{number}-scratch") for number, group in enumerate(item.groups)
            ),
        )
        for item in world.demands
    )
    known = world.view.storage
    storage = Storage((*known.volumes, *volumes), (*known.claims, *claims), CLASSES)
    return replace(world, view=replace(world.view, storage=storage), demands=demands)


def made_for(world: str, pod: str, shape: PodShape, view: ClusterView, uid: str) -> list[Document]:
    """Claims, and the volumes they are bound to, as controllers would make them for the pod of that UID."""
    found: list[Document] = []
    claims = {item.name: item for item in view.storage.claims}
    volumes = {item.name: item for item in view.storage.volumes}
    for name, owner in shape.ephemeral_claims:
        if name in claims:
            real = f"{pod}-{MADE_VOLUME}"
            volume = replace(volumes[claims[name].volume], name=f"pv-{real}", claim=(_NAMESPACE, real))
            claim = replace(claims[name], name=real, volume=volume.name)
            document = claim_document(world, claim)
            document["metadata"] |= _owned(pod, uid if claims[name].controller == owner else _ANOTHER)
            found += [volume_document(world, volume), document]
    return found


def _owned(pod: str, uid: str) -> Document:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}]}
