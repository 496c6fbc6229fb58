"""What is made for pods of generated worlds once they are there, and devices, as documents for a real API server. Used by
test_real_scheduler.

No controller runs beside the API server: the claims of ephemeral volumes, and those that templates of resource claims ask for, are
made here, as soon as a pod has its UID. In the model the claim of a pod's ephemeral volume has a name of its group's; in the
cluster it gets the name that Kubernetes gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reconciler.model.attachments import (
    ClaimSpec,
    Device,
    Devices,
    PersistentVolume,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    Storage,
    VolumeClaim,
)
from reconciler.model.demand import ChunkGroup
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL
from reconciler.model.pods import GeneratedClaim, PodShape
from reconciler.model.view import ClusterView
from tests.e2e.world_documents import MADE_VOLUME, node_name
from tests.e2e.world_volumes import CLASSES, claim_document, volume_document, worlds_with_volumes
from tests.properties.wide_devices import CLASSES as DEVICE_CLASSES
from tests.properties.wide_devices import COUNTED, DRIVER, SPECS
from tests.properties.wide_volumes import DISKS, LABELS, REACHES
from tests.unit.placement.worlds import World

_NAMESPACE = "shop"
_API = "resource.k8s.io/v1"
_ANOTHER = "another"
FEW, MANY = 3, 10

Document = dict[str, Any]


@st.composite
def worlds_with_claims(draw: st.DrawFn) -> World:
    """Of four one has ephemeral volumes, one has devices, one has both."""
    world = _with_single_pods(draw(worlds_with_volumes()))
    kinds = draw(st.sampled_from(["none", "volumes", "devices", "both"]))
    if kinds in {"volumes", "both"}:
        world = draw(_with_ephemeral_volumes(world))
    if kinds in {"devices", "both"}:
        world = draw(_with_devices(world))
    return world


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


@st.composite
def _with_devices(draw: st.DrawFn, world: World) -> World:
    """Templates of claims; of a demand of one pod the claim may have been made, and the template may have changed since."""
    templates = tuple(ResourceClaimTemplate(_NAMESPACE, name, SPECS[name]) for name in COUNTED)
    claims: list[ResourceClaim] = []

    def changed(group: ChunkGroup, name: str) -> ChunkGroup:
        if group.count > MANY or draw(st.booleans()):
            return group
        template = draw(st.sampled_from(COUNTED))
        if group.count != 1 or draw(st.integers(0, 3)) == 0:
            return replace(group, shape=replace(group.shape, resource_claim_templates=(template,)))
        spec = SPECS[draw(st.sampled_from((template, template, *COUNTED)))]
        claims.append(ResourceClaim(_NAMESPACE, name, spec, owner=name))
        return replace(group, shape=replace(group.shape, generated_claims=(GeneratedClaim(template, name, name),)))

    demands = tuple(
        replace(
            item,
            groups=tuple(changed(group, f"{item.ref.name}-{number}-gpu") for number, group in enumerate(item.groups)),
        )
        for item in world.demands
    )
    alike = draw(st.integers(0, 3)) > 0
    sizes = st.lists(st.sampled_from(["big", "small"]), min_size=1, max_size=4)
    common = draw(sizes)
    slices = tuple(
        ResourceSlice(
            f"{item.name}-gpus",
            DRIVER,
            item.name,
            item.name,
            devices=tuple(
                Device(f"gpu-{number}", (((DRIVER, "size"), size),))
                for number, size in enumerate(common if alike else draw(sizes))
            ),
        )
        for item in world.view.nodes
        if alike or draw(st.booleans())
    )
    devices = Devices(slices, DEVICE_CLASSES, tuple(sorted(claims, key=lambda item: item.name)), templates)
    return replace(world, view=replace(world.view, devices=devices), demands=demands)


def device_class_documents() -> list[Document]:
    return [
        {
            **_named("DeviceClass", item.name),
            "spec": {"selectors": [{"cel": {"expression": part}} for part in item.selectors]},
        }
        for item in DEVICE_CLASSES
        if item.name in {"big", "small"}
    ]


def slice_documents(world: str, view: ClusterView) -> list[Document]:
    return [_slice(world, item.node, item) for item in view.devices.slices]


def planned_slice_documents(
    world: str, name: str, labels: Iterable[tuple[str, str]], view: ClusterView
) -> list[Document]:
    """Devices of a node to be made: those of a node like it."""
    wanted = _likeness(dict(labels))
    like = next((node for node in view.nodes if _likeness(dict(node.labels)) == wanted), None)
    return [_slice(world, name, item) for item in view.devices.slices if like is not None and item.node == like.name]


def _likeness(labels: dict[str, str]) -> tuple[str | None, str | None]:
    return labels.get(NODEPOOL_LABEL), labels.get(INSTANCE_TYPE_LABEL)


def _slice(world: str, node: str, item: ResourceSlice) -> Document:
    full = node_name(world, node)
    listed = [
        {"name": device.name, "attributes": {name: {"string": value} for (_, name), value in device.attributes}}
        for device in item.devices
    ]
    return {
        **_named("ResourceSlice", f"{full}-gpus"),
        "spec": {
            "driver": item.driver,
            "nodeName": full,
            "pool": {"name": full, "generation": 1, "resourceSliceCount": 1},
            "devices": listed,
        },
    }


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
    specs = {item.name: item.spec for item in view.devices.templates}
    specs |= {item.name: item.spec for item in view.devices.claims}
    for template, source in _asked(shape):
        found.append(
            {
                **_named("ResourceClaim", f"{pod}-{template}", namespace=world, **_owned(pod, uid)),
                "spec": {"devices": {"requests": _requests(specs[source])}},
            }
        )
    return found


def status_with_claims(pod: str, shape: PodShape) -> Document:
    """What the controller writes into the pod's status."""
    made = [{"name": template, "resourceClaimName": f"{pod}-{template}"} for template, _ in _asked(shape)]
    return {"status": {"resourceClaimStatuses": made}}


def asks_for_devices(shape: PodShape) -> bool:
    return bool(_asked(shape))


def _asked(shape: PodShape) -> Sequence[tuple[str, str]]:
    """Templates, each with the template or the claim that says what is asked for."""
    return (
        *((name, name) for name in shape.resource_claim_templates),
        *((item.template, item.name) for item in shape.generated_claims),
    )


def _requests(spec: ClaimSpec) -> list[Document]:
    return [
        {"name": f"r{number}", "exactly": {"deviceClassName": item.device_class, "count": item.count}}
        for number, item in enumerate(spec.requests)
    ]


def _owned(pod: str, uid: str) -> Document:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}]}


def _named(kind: str, name: str, *, namespace: str | None = None, **metadata: Any) -> Document:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name, **place, **metadata}}
