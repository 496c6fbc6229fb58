"""A Buffer is sized through the scale subresource of a real API server, as kubectl, KEDA and the HorizontalPodAutoscaler do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import manifest
from tests.controlplane import ControlPlane
from tests.controlplane.definitions import defined
from tests.controlplane.rest import ApiError, Document
from tests.integration.real_cluster import Folder

pytestmark = pytest.mark.e2e

BUFFER = ("autoscaling.x-k8s.io/v1alpha1", "Buffer")
Run = Callable[..., str]


def runners(replicas: int | None = 2, pods: int = 2) -> Document:
    """replicas: of the spec; None leaves the field out. pods: of the capacity."""
    container = {"name": "runner", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
    capacity = {"pods": {"replicaNum": pods, "podSpec": {"containers": [container]}}}
    spec = {"capacity": capacity, **({} if replicas is None else {"replicas": replicas})}
    return manifest(*BUFFER, "runners", "default", spec=spec)


@pytest.fixture
def plane(empty_api_server: ControlPlane) -> Iterator[ControlPlane]:
    with defined(empty_api_server.api, "Buffer"):
        yield empty_api_server


@pytest.fixture
def run(plane: ControlPlane, tmp_path: Path) -> Run:
    """`headroom apply` of one document, or another command over the repository as it was applied last."""
    folder = Folder(plane, tmp_path / "repository")

    def headroom(document: Document | None, *arguments: str) -> str:
        if document is not None:
            folder.declare(document)
        done = folder.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return headroom


def buffer(plane: ControlPlane) -> Document:
    found = plane.api.get(*BUFFER, "runners", namespace="default")
    assert found is not None
    return found


def scale(plane: ControlPlane, replicas: int) -> None:
    """What `kubectl scale` sends."""
    body = {"spec": {"replicas": replicas}}
    plane.api.patch(*BUFFER, "runners", body, namespace="default", subresource="scale")


def scale_of(plane: ControlPlane) -> dict[str, Any]:
    """What a HorizontalPodAutoscaler reads."""
    return plane.api.document("GET", plane.api.path(*BUFFER, "default", "runners") + "/scale")


def test_the_number_that_a_scaler_sets_counts_and_git_leaves_it(plane: ControlPlane, run: Run) -> None:
    run(runners(), "apply", "--yes")
    run(None, "apply", "--yes")  # the first pass has made the object, this one writes its status
    read = scale_of(plane)
    assert (read["spec"]["replicas"], read["status"]["replicas"]) == (2, 2)
    assert "autoscaling.x-k8s.io/buffer=runners" in read["status"]["selector"], "an autoscaler refuses a scale without"

    scale(plane, 5)
    run(runners(replicas=3, pods=3), "apply", "--yes")
    run(None, "apply", "--yes")

    found = buffer(plane)
    assert (found["spec"]["replicas"], found["status"]["replicas"]) == (5, 5)
    assert found["spec"]["capacity"]["pods"]["replicaNum"] == 3, "the rest of the document is applied"
    assert "through /scale" in run(None, "explain", "Buffer/default/runners")
    assert "No change now" in run(None, "plan")


def test_a_buffer_without_the_field_cannot_be_read_and_says_why(plane: ControlPlane, run: Run) -> None:
    run(runners(replicas=None), "apply", "--yes")
    with pytest.raises(ApiError, match="spec replicas field"):
        scale_of(plane)
    scale(plane, 4)
    assert scale_of(plane)["spec"]["replicas"] == 4
