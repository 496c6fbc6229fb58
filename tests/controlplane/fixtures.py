"""Pytest fixtures: one control plane for a whole session, started by the first test that asks.

A plugin, named in tests/conftest.py. Only integration and e2e tests use it. Where the programs
are neither there nor can be built, such tests are skipped with a line that says what to
install; in CI they fail instead.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.gitea import Gitea
from tests.controlplane.go_modules import CONTROL_PLANE, GITEA, KUEUE, Module
from tests.controlplane.kueue import Kueue
from tests.controlplane.programs import ProgramsMissingError, find_all
from tests.programs import fail_or_skip


@pytest.fixture(scope="session")
def control_plane_programs(request: pytest.FixtureRequest) -> None:
    """The programs are there, if need be after minutes of building them."""
    _find_or_skip(request, CONTROL_PLANE)


@pytest.fixture(scope="session")
def control_plane(
    control_plane_programs: None,  # noqa: ARG001 - asked for what it does
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """Everything: API server, scheduler, controllers, Karpenter, KWOK. Shared by all tests."""
    with _running(ControlPlane(state_dir=tmp_path_factory.mktemp("control-plane"))) as running:
        yield running


@pytest.fixture(scope="session")
def api_server(
    control_plane_programs: None,  # noqa: ARG001 - asked for what it does
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """API server and CRDs, with nothing that acts on what is stored. Shared by all tests."""
    with _running(ControlPlane(actors=(), state_dir=tmp_path_factory.mktemp("api-server"))) as running:
        yield running


@pytest.fixture(scope="session")
def gitea(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    """A forge, shared by all tests; each makes a repository of its own."""
    _find_or_skip(request, (GITEA,))
    with Gitea(tmp_path_factory.mktemp("gitea")) as running:
        yield running


@pytest.fixture(scope="session")
def control_plane_with_kueue(
    control_plane_programs: None,  # noqa: ARG001 - asked for what it does
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """Everything, and Kueue: a control plane of its own, since Kueue is asked about every Job in it."""
    _find_or_skip(request, (KUEUE,))
    with _running(ControlPlane(state_dir=tmp_path_factory.mktemp("kueue"))) as running, Kueue(running):
        yield running


@pytest.fixture
def empty_control_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane; what the test made is deleted after it (some seconds)."""
    yield control_plane
    control_plane.sweep()


@pytest.fixture
def empty_api_server(api_server: ControlPlane) -> Iterator[ControlPlane]:
    """The shared API server; what the test made is deleted after it (but for namespaces)."""
    yield api_server
    api_server.sweep()


def _find_or_skip(request: pytest.FixtureRequest, modules: tuple[Module, ...]) -> None:
    """Find what these modules hold, or build it."""
    with ExitStack() as stack:
        capture = request.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            # Or the build's progress lines would only be seen after it.
            stack.enter_context(capture.global_and_fixture_disabled())
        try:
            find_all(modules)
        except ProgramsMissingError as error:
            missing = str(error)
        else:
            return
    fail_or_skip(missing)


@contextmanager
def _running(plane: ControlPlane) -> Iterator[ControlPlane]:
    with plane:
        yield plane
    # pytest keeps the logs of the last sessions; etcd's files are large and of no use then.
    shutil.rmtree(plane.folder / "etcd", ignore_errors=True)
