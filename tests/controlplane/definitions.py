"""Headroom's own kinds on a control plane: other tests find it without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reconciler.manifests.crds import crds
from tests.controlplane.rest import ApiError, Rest
from tests.controlplane.waiting import eventually

DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
ALL = ("Buffer", "MetricsProducer", "ProvisioningClass", "ProvisioningRequest")


@contextmanager
def defined(api: Rest, *kinds: str) -> Iterator[None]:
    """In the block these kinds are served."""
    define(api, *kinds)
    try:
        yield
    finally:
        undefine(api, *kinds)


def define(api: Rest, *kinds: str) -> None:
    for definition in crds(kinds):
        api.apply(dict(definition))
    eventually(lambda: all(_is_served(api, each) for each in crds(kinds)), within=30, what=f"{kinds} are served")


def undefine(api: Rest, *kinds: str) -> None:
    for definition in crds(kinds):
        api.delete(*DEFINITION, definition["metadata"]["name"])
    eventually(lambda: not any(_is_served(api, each) for each in crds(kinds)), within=60, what=f"{kinds} are gone")


def _is_served(api: Rest, definition: Mapping[str, Any]) -> bool:
    spec = definition["spec"]
    try:
        api.list(f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"])
    except (ApiError, LookupError):
        return False
    return True
