"""Devices of generated worlds: slices of nodes, classes that can be counted and such that cannot, claims, templates of claims and
claims that were made from these. Used by wide_worlds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.attachments import (
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceName,
    DeviceRequest,
    Devices,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from reconciler.model.pods import GeneratedClaim, PodShape
from tests.properties.sampling import sampled_from

DRIVER = "gpu.example.com"
NAMESPACES = ("shop", "bank")
CLASSES = (
    DeviceClass("all", (f'device.driver == "{DRIVER}"',)),
    DeviceClass("any", (f"device.driver == '{DRIVER}'",)),
    DeviceClass("big", (f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].size == "big"',)),
    DeviceClass("odd", (f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("10Gi"))',)),
    DeviceClass("small", (f'device.attributes["{DRIVER}"].size == "small"',)),
)
SPECS = {
    "one": ClaimSpec((DeviceRequest("all", 1),)),
    "two": ClaimSpec((DeviceRequest("any", 2),)),
    "big": ClaimSpec((DeviceRequest("big", 1),)),
    "small": ClaimSpec((DeviceRequest("small", 1),)),
    "both": ClaimSpec((DeviceRequest("small", 1), DeviceRequest("big", 1))),
    "odd": ClaimSpec((DeviceRequest("odd", 1),)),
    "shared": ClaimSpec((DeviceRequest("all", 1),), simple=False),
    "classless": ClaimSpec((DeviceRequest("gone", 1),)),
}
COUNTED = ("big", "small", "both")
"""Judged side by side; the others share devices with these."""
OWNERS = ("pod-0", "pod-1", "pod-2")
"""UIDs of pods for which claims were made; of other pods they are yet to come."""


@st.composite
def _slices(draw: st.DrawFn, nodes: tuple[str, ...]) -> tuple[ResourceSlice, ...]:
    found = []
    odd = draw(st.integers(0, 5)) == 0
    for node in nodes:
        for number in range(draw(sampled_from((0, 1, 1, 2)))):
            devices = tuple(
                Device(
                    f"gpu-{number}-{index}",
                    (((DRIVER, "size"), draw(sampled_from(("big", "small")))),),
                    simple=not (odd and draw(st.booleans())),
                )
                for index in range(draw(st.integers(1, 3)))
            )
            generation = draw(sampled_from((1, 1, 1, 2)))
            slices = draw(sampled_from((1, 1, 1, 2)))
            name = f"{node}-{number}"
            owner = "" if odd and draw(st.booleans()) else node
            found.append(ResourceSlice(name, DRIVER, node, owner, generation, slices, devices))
    return tuple(found)


def made_name(uid: str) -> str:
    return f"{uid}-gpu"


def _made(draw: st.DrawFn, namespace: str, uid: str, free: list[DeviceName]) -> ResourceClaim:
    """A claim that was made for the pod, nearly always; it may have its device already, taken from the free ones."""
    owner = draw(sampled_from((*[uid] * 8, "another", "")))
    name = draw(sampled_from((*COUNTED * 4, *SPECS)))
    allocated: tuple[DeviceName, ...] = ()
    if free and draw(st.integers(0, 3)) == 0:
        allocated = (free.pop(draw(st.integers(0, len(free) - 1))),)
    return ResourceClaim(namespace, made_name(uid), SPECS[name], allocated, owner)


@st.composite
def devices(draw: st.DrawFn, nodes: tuple[str, ...]) -> Devices:
    """nodes: names of those that may have some."""
    slices = draw(_slices(nodes))
    every: list[DeviceName] = [(item.driver, item.pool, device.name) for item in slices for device in item.devices]
    claims = []
    for namespace in NAMESPACES:
        claims += [ResourceClaim(namespace, name, spec) for name, spec in SPECS.items()]
        claims.append(ResourceClaim(namespace, "strange", SPECS["one"], ((DRIVER, "elsewhere", "gpu-9"),)))
        if every:
            had = draw(sampled_from(every))
            every.remove(had)
            claims.append(ResourceClaim(namespace, "had", SPECS["one"], (had,)))
        claims += [_made(draw, namespace, uid, every) for uid in OWNERS if draw(st.booleans())]
    templates = tuple(
        ResourceClaimTemplate(namespace, name, spec) for namespace in NAMESPACES for name, spec in SPECS.items()
    )
    in_order = tuple(sorted(claims, key=lambda item: (item.namespace, item.name)))
    return Devices(slices, CLASSES, in_order, tuple(sorted(templates, key=lambda item: (item.namespace, item.name))))


def claims_of_a_pod() -> st.SearchStrategy[tuple[str, ...]]:
    """One that was made for a pod may be named by others, and by the very same pod."""
    made = made_name(OWNERS[0])
    few = (("had",), ("big",), ("small",), ("one",), ("strange",), ("gone",), (made,))
    return sampled_from((*[()] * 20, *few))


def claims_of_a_bound_pod() -> st.SearchStrategy[tuple[str, ...]]:
    return sampled_from(((), (), (), ("had",), ("one",), (made_name(OWNERS[0]),)))


def templates_of_a_pod() -> st.SearchStrategy[tuple[str, ...]]:
    names = sampled_from((*COUNTED * 6, *SPECS, "gone"))
    return st.one_of(st.just(()), names.map(lambda name: (name,)), st.just(("big", "small")))


@st.composite
def with_devices(draw: st.DrawFn, plain: PodShape, uid: str) -> PodShape:
    """The shape of the pod of that UID with devices. The controller may have been at work for it: then claims stand in the place of
    templates, which may have changed since."""
    templates = draw(templates_of_a_pod())
    made: tuple[GeneratedClaim, ...] = ()
    if draw(st.booleans()):
        numbers = range(len(templates))
        made = tuple(
            GeneratedClaim(template, made_name(uid) + f"-{number}" * (number > 0), uid)
            for number, template in zip(numbers, templates, strict=True)
        )
        templates = ()
    return replace(
        plain, resource_claims=draw(claims_of_a_pod()), resource_claim_templates=templates, generated_claims=made
    )
