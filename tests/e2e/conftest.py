"""What every whole-path test starts from: the shop on a real control plane, its repository, headroom's own account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane
from tests.e2e.daemon_process import install_rbac
from tests.e2e.research import Research
from tests.e2e.shop import Shop
from tests.git_repository import GitRepository
from tests.image import build
from tests.programs import fail_or_skip


@pytest.fixture(scope="module")
def plane(control_plane_programs: None) -> Iterator[ControlPlane]:  # noqa: ARG001 - asked for what it does
    """One in which nobody but the scheduler acts: nodes stay as they are made, pods are never started, and one that is evicted never ends."""
    with ControlPlane(actors=["kube-scheduler"]) as running:
        yield running


@pytest.fixture
def shop(empty_control_plane: ControlPlane) -> Shop:
    return Shop(empty_control_plane)


@pytest.fixture
def research(empty_control_plane: ControlPlane) -> Research:
    return Research(empty_control_plane)


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path / "repository")
    made.commit({"README.md": "The capacity of one cluster.\n"})
    return made


@pytest.fixture
def kubeconfig(empty_control_plane: ControlPlane) -> Path:
    """Headroom's own: a service account's token with the shipped RBAC and nothing more."""
    return install_rbac(empty_control_plane)


@pytest.fixture(scope="session")
def image() -> build.Image:
    """The image of the checkout, unpacked; built if it is not there (a minute or two)."""
    if build.missing():
        fail_or_skip(build.missing())
    return build.image()
