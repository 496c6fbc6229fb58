"""`headroom crd | kubectl apply --server-side -f -` on a real API server: what is somebody else's, or newer, stays as it is. Needs kubectl."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from reconciler.manifests.crds import crds
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.programs import find_data
from tests.controlplane.rest import Document, condition
from tests.headroom_command import path_with_headroom
from tests.programs import program

pytestmark = pytest.mark.e2e

DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
NAMES = sorted(definition["metadata"]["name"] for definition in crds())
REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
REQUESTS = "provisioningrequests.autoscaling.x-k8s.io"


@pytest.fixture
def server(control_plane_programs: None) -> Iterator[ControlPlane]:  # noqa: ARG001 - asked for what it does
    """One of its own, since a kind that is deleted and made again keeps others waiting."""
    with ControlPlane.api_only() as running:
        yield running


def stored(server: ControlPlane) -> Document:
    """The definition of ProvisioningRequest, once the server has nothing more to write into it."""
    found = server.api.get(*DEFINITION, REQUESTS)
    assert condition(found, "Established") == "True"
    assert found is not None
    return found


def apply_as_documented(server: ControlPlane, home: Path) -> subprocess.CompletedProcess[str]:
    program("kubectl", install="kubectl")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", "headroom crd | kubectl apply --server-side -f -"],
        env={"PATH": path_with_headroom(), "KUBECONFIG": str(server.kubeconfig()), "HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )


def applied(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The names that kubectl says it has applied."""
    lines = [line.removeprefix("customresourcedefinition.apiextensions.k8s.io/") for line in done.stdout.splitlines()]
    return sorted(line.removesuffix(" serverside-applied") for line in lines)


def somebody_elses() -> Document:
    """The definition of Cluster Autoscaler, as it ships it."""
    document: Document = yaml.safe_load(find_data("provisioning-request-crd.yaml").read_text())
    return document


def newer() -> Document:
    """Headroom's own, with a version that this headroom does not know."""
    (definition,) = [dict(item) for item in crds(["ProvisioningRequest"])]
    version = {**definition["spec"]["versions"][0], "name": "v2", "storage": False}
    return {**definition, "spec": {**definition["spec"], "versions": [*definition["spec"]["versions"], version]}}


def assert_left_as_it_is(server: ControlPlane, home: Path, why: str) -> None:
    before = eventually(partial(stored, server), within=30, what="the definition is in force")
    done = apply_as_documented(server, home)
    assert done.stderr == f"{REQUESTS} is left out: {why}\n"
    assert applied(done) == [name for name in NAMES if name != REQUESTS]
    assert stored(server) == before


def test_what_is_somebody_elses_or_newer_stays_as_it_is(server: ControlPlane, tmp_path: Path) -> None:
    server.api.apply(somebody_elses())
    assert_left_as_it_is(server, tmp_path, "the cluster has one that is not headroom's")

    # A kind that is not served yet is only let go of much later.
    eventually(lambda: server.api.list(*REQUEST) == [], within=60, what="the kind is served")
    server.api.delete(*DEFINITION, REQUESTS)
    eventually(lambda: server.api.get(*DEFINITION, REQUESTS) is None, within=60, what="the definition has gone")
    for _ in range(2):
        done = apply_as_documented(server, tmp_path)
        assert (applied(done), done.stderr) == (NAMES, "")

    server.api.apply(newer())
    assert_left_as_it_is(server, tmp_path, "the cluster has a newer one, with version v2")
