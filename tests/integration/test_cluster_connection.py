"""What happens to the view when the API server goes away and comes back; unit/cluster shows what its answers mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from reconciler.cluster.access import current_context, kubeconfig_access
from reconciler.model.changes import Apply, Outcome
from reconciler.model.errors import Invalid
from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.integration.real_cluster import opened, pod_template, template_ref, view_where

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def own_server(
    control_plane_programs: None,  # noqa: ARG001 - asked for what it does
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """An API server of this file's own: the shared one must not be stopped."""
    with ControlPlane(actors=(), state_dir=tmp_path_factory.mktemp("own-server")) as plane:
        yield plane


@contextmanager
def stopped(plane: ControlPlane) -> Iterator[None]:
    plane.stop_api_server()
    try:
        yield
    finally:
        plane.start_api_server()


def test_a_lost_connection_makes_the_view_incomplete_until_everything_was_read_anew(own_server: ControlPlane) -> None:
    plane, told = own_server, Event()
    plane.api.apply(pod_template("kept"))
    with opened(plane.kubeconfig(), changed=told.set) as cluster:
        assert cluster.view().complete
        told.clear()
        with stopped(plane):
            assert told.wait(20), "whoever deletes must hear of it"
            lost = view_where(
                cluster,
                lambda view: "PodTemplate" in view.unread,
                what="the loss is noticed",
            )
            assert not lost.complete
            assert template_ref("kept") in lost.objects, "what was read stays"
            refused = cluster.write(Apply(template_ref("new"), pod_template("new")))
            assert refused.outcome is Outcome.FAILED
            assert plane.url in refused.message
        plane.api.apply(pod_template("later"))
        back = view_where(
            cluster,
            lambda view: view.complete and template_ref("later") in view.objects,
            what="the view is whole again",
        )
    assert template_ref("kept") in back.objects
    assert [pool for pool in back.apis if pool == ("karpenter.sh", "NodePool")]


def test_a_crd_that_the_starting_server_does_not_serve_yet_is_not_taken_for_gone(own_server: ControlPlane) -> None:
    """Right after a start the server knows its CRDs but answers 404 for their objects."""
    plane = own_server
    pool = {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [],
    }
    document = manifest("karpenter.sh/v1", "NodePool", "general", spec={"template": {"spec": pool}})
    plane.api.apply(document)
    views = []
    with opened(plane.kubeconfig(), discovery_interval=0.02) as cluster:
        cluster.view()
        with stopped(plane):
            view_where(cluster, lambda view: not view.complete, what="the loss is noticed")

        def back() -> bool:
            views.append(cluster.view())
            return views[-1].complete

        eventually(back, within=30, what="the view is whole again", every=0.01)
    assert all(view.objects for view in views if view.complete)


def test_closing_ends_every_thread_at_once(own_server: ControlPlane) -> None:
    with opened(own_server.kubeconfig()) as cluster:
        cluster.view()
        threads = list(cluster._threads)
        assert len(threads) > 20
        cluster.close()
        assert [thread.name for thread in threads if thread.is_alive()] == []


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Invalid) as refused:
        kubeconfig_access(path=str(tmp_path / "nothing"))
    assert str(tmp_path / "nothing") in refused.value.message
    assert current_context(str(tmp_path / "nothing")) is None


def test_a_context_that_is_not_there_is_named(own_server: ControlPlane) -> None:
    path = str(own_server.kubeconfig())
    with pytest.raises(Invalid, match="production"):
        kubeconfig_access("production", path)
    assert current_context(path) == "controlplane"
