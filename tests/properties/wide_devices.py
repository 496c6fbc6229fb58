"""Devices of generated worlds: slices of nodes, classes that can be counted and such that cannot, claims and templates of claims.
Used by wide_worlds."""

from __future__ import annotations

from hypothesis import strategies as st

from reconciler.model.devices import (
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


@st.composite
def _slices(draw: st.DrawFn, nodes: tuple[str, ...]) -> tuple[ResourceSlice, ...]:
    found = []
    odd = draw(st.integers(0, 5)) == 0
    for node in nodes:
        for number in range(draw(st.sampled_from((0, 1, 1, 2)))):
            devices = tuple(
                Device(
                    f"gpu-{number}-{index}",
                    (((DRIVER, "size"), draw(st.sampled_from(("big", "small")))),),
                    simple=not (odd and draw(st.booleans())),
                )
                for index in range(draw(st.integers(1, 3)))
            )
            generation = draw(st.sampled_from((1, 1, 1, 2)))
            slices = draw(st.sampled_from((1, 1, 1, 2)))
            name = f"{node}-{number}"
            owner = "" if odd and draw(st.booleans()) else node
            found.append(ResourceSlice(name, DRIVER, node, owner, generation, slices, devices))
    return tuple(found)


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
            had = draw(st.sampled_from(every))
            every.remove(had)
            claims.append(ResourceClaim(namespace, "had", SPECS["one"], (had,)))
    templates = tuple(
        ResourceClaimTemplate(namespace, name, spec) for namespace in NAMESPACES for name, spec in SPECS.items()
    )
    in_order = tuple(sorted(claims, key=lambda item: (item.namespace, item.name)))
    return Devices(slices, CLASSES, in_order, tuple(sorted(templates, key=lambda item: (item.namespace, item.name))))


def claims_of_a_pod() -> st.SearchStrategy[tuple[str, ...]]:
    return st.sampled_from(((), (), ("had",), ("big",), ("small",), ("one",), ("strange",), ("gone",)))


def templates_of_a_pod() -> st.SearchStrategy[tuple[str, ...]]:
    names = st.sampled_from((*COUNTED, *COUNTED, *SPECS, "gone"))
    return st.one_of(st.just(()), names.map(lambda name: (name,)), st.just(("big", "small")))
