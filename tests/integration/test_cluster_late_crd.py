"""Kinds that come with a CRD: absent, installed later, and gone again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from reconciler.manifests.crds import crds
from reconciler.model.changes import Apply, Outcome
from reconciler.model.refs import ObjectRef
from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.programs import find_data
from tests.controlplane.rest import Document, condition
from tests.headroom_command import path_with_headroom
from tests.integration.real_cluster import definition, opened, view_where
from tests.programs import program

pytestmark = pytest.mark.e2e

GROUP, KIND = "autoscaling.karpenter.sh", "MetricsProducer"
REF = ObjectRef(GROUP, KIND, "default", "hours")
DOCUMENT = manifest(f"{GROUP}/v1alpha1", KIND, "hours", "default", spec={"schedule": {"defaultReplicas": 1}})
NAME = f"metricsproducers.{GROUP}"


def remove_crd(plane: ControlPlane) -> None:
    """And waits until the server has let go of the kind, which whoever empties it after a test relies on."""
    plane.api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", NAME)

    def groups() -> list[str]:
        return [group["name"] for group in plane.api.document("GET", "/apis")["groups"]]

    eventually(lambda: GROUP not in groups(), within=30, what="the group is gone")


def test_a_kind_is_picked_up_when_its_crd_is_installed_and_let_go_with_it(plane: ControlPlane) -> None:
    with opened(plane.kubeconfig()) as cluster:
        before = cluster.view()
        assert before.complete, "a kind that nobody installed is no gap"
        assert (GROUP, KIND) not in before.apis
        plane.api.apply(definition(GROUP, KIND, "v1alpha1"))
        view_where(cluster, lambda view: (GROUP, KIND) in view.apis, what="the kind is discovered")
        assert cluster.write(Apply(REF, DOCUMENT)).outcome is Outcome.APPLIED
        view_where(cluster, lambda view: REF in view.objects, what="its objects are watched")
        remove_crd(plane)
        after = view_where(
            cluster, lambda view: (GROUP, KIND) not in view.apis and view.complete, what="the kind is gone"
        )
    assert REF not in after.objects


def test_a_write_right_after_the_crd_does_not_wait_for_the_next_look(plane: ControlPlane) -> None:
    with opened(plane.kubeconfig(), discovery_interval=3600) as cluster:
        cluster.view()
        plane.api.apply(definition(GROUP, KIND, "v1alpha1"))
        try:
            view_where(
                cluster,
                lambda _view: cluster.write(Apply(REF, DOCUMENT), dry_run=True).ok,
                what="the server serves the kind",
            )
        finally:
            remove_crd(plane)


def test_a_version_that_headroom_does_not_read_is_a_gap(plane: ControlPlane) -> None:
    plane.api.apply(definition(GROUP, KIND, "v9"))
    try:
        with opened(plane.kubeconfig()) as cluster:
            view = view_where(cluster, lambda view: not view.complete, what="the version is noticed")
            assert view.gaps == (f"metricsproducers.{GROUP} are served as v9 only; headroom reads v1alpha1",)
    finally:
        remove_crd(plane)


# `headroom crd | kubectl apply --server-side -f -` on a real API server: what is somebody else's, or newer, stays as it is. Needs kubectl.

DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
NAMES = sorted(definition["metadata"]["name"] for definition in crds())
REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
REQUESTS = "provisioningrequests.autoscaling.x-k8s.io"


@pytest.fixture
def server(control_plane_programs: None) -> Iterator[ControlPlane]:  # noqa: ARG001 - asked for what it does
    """One of its own, since a kind that is deleted and made again keeps others waiting."""
    with ControlPlane(actors=()) as running:
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
