"""Kinds of dynamic resource allocation, from the wire to the view and through a snapshot, in every version that is served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.cluster.resources import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from reconciler.cluster.snapshot.capture import capture
from reconciler.cluster.snapshot.files import snapshot_at
from reconciler.cluster.view import ViewStore
from reconciler.model.attachments import (
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceRequest,
    Devices,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from reconciler.model.pods import GeneratedClaim
from tests.unit.cluster.documents import pod

SECRET = "hunter2"
FIELDS = {"attributes": {"type": {"string": "gpu"}, "vendor.example.com/index": {"int": 3}, "healthy": {"bool": True}}}
ATTRIBUTES = (
    (("gpu.example.com", "healthy"), "true"),
    (("gpu.example.com", "type"), "gpu"),
    (("vendor.example.com", "index"), "3"),
)
REQUEST = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
CLAIM = {"requests": [{"name": "gpus", "exactly": REQUEST}], "config": [{"opaque": {"parameters": {"token": SECRET}}}]}
DOCUMENTS: Mapping[Resource, Mapping[str, Any]] = {
    RESOURCE_SLICES: {
        "metadata": {"name": "node-1-gpu"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "node-1",
            "pool": {"name": "node-1", "generation": 4, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", **FIELDS}],
        },
    },
    DEVICE_CLASSES: {
        "metadata": {"name": "gpu"},
        "spec": {
            "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
            "config": [{"opaque": {"parameters": {"token": SECRET}}}],
        },
    },
    RESOURCE_CLAIMS: {
        "metadata": {"namespace": "shop", "name": "mine"},
        "spec": {"devices": CLAIM},
        "status": {
            "allocation": {
                "devices": {
                    "results": [{"request": "gpus", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]
                }
            }
        },
    },
    RESOURCE_CLAIM_TEMPLATES: {
        "metadata": {"namespace": "shop", "name": "two-gpus"},
        "spec": {"spec": {"devices": CLAIM}},
    },
}
SPEC = ClaimSpec((DeviceRequest("gpu", 2),))
DEVICES = Devices(
    (
        ResourceSlice(
            *("node-1-gpu", "gpu.example.com", "node-1"),
            node="node-1",
            generation=4,
            devices=(Device("gpu-0", ATTRIBUTES),),
        ),
    ),
    (DeviceClass("gpu", ('device.driver == "gpu.example.com"',)),),
    (ResourceClaim("shop", "mine", SPEC, (("gpu.example.com", "node-1", "gpu-0"),)),),
    (ResourceClaimTemplate("shop", "two-gpus", SPEC),),
)


def test_what_placement_needs_of_devices_is_read_and_captured(tmp_path: Path) -> None:
    def read(resource: Resource) -> Iterable[Mapping[str, Any]]:
        return [DOCUMENTS[resource]] if resource in DOCUMENTS else []

    store = ViewStore()
    for resource, document in DOCUMENTS.items():
        store.put(resource, document)
    assert store.view().devices == DEVICES
    capture(read, tmp_path)
    assert snapshot_at(str(tmp_path)).view().devices == DEVICES
    assert SECRET not in "".join(file.read_text() for file in tmp_path.iterdir())


def test_v1beta1_has_its_fields_elsewhere() -> None:
    store = ViewStore()
    store.put(
        RESOURCE_SLICES,
        {
            "metadata": {"name": "node-1-gpu"},
            "spec": {**DOCUMENTS[RESOURCE_SLICES]["spec"], "devices": [{"name": "gpu-0", "basic": FIELDS}]},
        },
    )
    flat = {"requests": [{"name": "gpus", **REQUEST}]}
    claim = {"metadata": {"namespace": "shop", "name": "two-gpus"}, "spec": {"spec": {"devices": flat}}}
    store.put(RESOURCE_CLAIM_TEMPLATES, claim)
    assert store.view().devices.slices == DEVICES.slices
    assert store.view().devices.templates == DEVICES.templates


@pytest.mark.parametrize(
    "request_fields",
    [
        {"exactly": {**REQUEST, "selectors": [{"cel": {"expression": "true"}}]}},
        {"exactly": {**REQUEST, "allocationMode": "All"}},
        {"exactly": {**REQUEST, "adminAccess": True}},
        {"firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]},
    ],
)
def test_requests_that_are_more_than_a_number_of_devices(request_fields: Mapping[str, Any]) -> None:
    store = ViewStore()
    devices = {"requests": [{"name": "gpus", **request_fields}]}
    claim = {"metadata": {"namespace": "shop", "name": "mine"}, "spec": {"devices": devices}}
    store.put(RESOURCE_CLAIMS, claim)
    assert not store.view().devices.claims[0].spec.simple


@pytest.mark.parametrize("fields", [{"consumesCounters": [{}]}, {"taints": [{}]}, {"allowMultipleAllocations": True}])
def test_devices_that_are_not_simply_taken_whole(fields: Mapping[str, Any]) -> None:
    store = ViewStore()
    spec = {**DOCUMENTS[RESOURCE_SLICES]["spec"], "devices": [{"name": "gpu-0", **fields}]}
    store.put(RESOURCE_SLICES, {"metadata": {"name": "node-1-gpu"}, "spec": spec})
    assert not store.view().devices.slices[0].devices[0].simple


def test_the_claims_made_for_a_waiting_pod_are_read_and_captured(tmp_path: Path) -> None:
    """One is made, one needed none, one is still to be made; of a pod on a node only the templates matter."""
    claims = [{"name": name, "resourceClaimTemplateName": "two-gpus"} for name in ("made", "none", "to-come")]
    statuses = [{"name": "made", "resourceClaimName": "web-1-made-x7k2p"}, {"name": "none"}]
    documents = [
        pod(name, node=node, phase="Pending", resourceClaimStatuses=statuses)
        for name, node in (("web-1", None), ("web-2", "node-1"))
    ]
    for document in documents:
        document["spec"]["resourceClaims"] = claims
    owner = {"kind": "Pod", "name": "web-1", "uid": "uid-web-1", "controller": True}
    made = {"metadata": {"namespace": "shop", "name": "web-1-made-x7k2p", "ownerReferences": [{"uid": "other"}, owner]}}
    bodies: Mapping[Resource, list[Any]] = {PODS: documents, RESOURCE_CLAIMS: [made]}
    capture(lambda resource: bodies.get(resource, []), tmp_path)
    view = snapshot_at(str(tmp_path)).view()
    waiting, running = (item.shape for item in view.pods)
    assert waiting.generated_claims == (GeneratedClaim("two-gpus", "web-1-made-x7k2p", "uid-web-1"),)
    assert waiting.resource_claim_templates == ("two-gpus",)
    assert running.generated_claims == ()
    assert running.resource_claim_templates == ("two-gpus",) * 3
    assert [claim.owner for claim in view.devices.claims] == ["uid-web-1"]
