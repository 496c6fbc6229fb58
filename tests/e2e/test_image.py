"""The image as the Dockerfile builds it: how large it is, what is in it, and that the daemon runs from it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git_repository import GitRepository
from tests.image.build import Image
from tests.image.pod import run_in

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 350_000_000


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """Where the daemon may write, whoever it is."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def run(image: Image, temporary: Path, *words: str, code: int = 0, **environment: str) -> str:
    mounts = {"/tmp": temporary}
    done = subprocess.run(run_in(image, list(words), mounts, environment), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_is_small_and_has_no_shell_but_the_one_of_git(image: Image) -> None:
    assert image.bytes <= MOST_BYTES
    assert image.config["User"] == "65532"
    programs = {path.name for path in image.root.glob("usr/bin/*")} - {"python3", "python3.13", "dash"}
    assert programs == {"git", "git-upload-pack", "git-receive-pack", "ssh", "ssh-keygen", "gpg", "sh"}
    assert not list(image.root.glob("opt/headroom/lib/python3.*/site-packages/pip*"))


def test_what_it_is_made_of_is_told_to_scanners(image: Image) -> None:
    status = image.root / "var/lib/dpkg/status.d"
    assert {"git", "openssh-client", "gpg", "libc6"} <= {path.name for path in status.iterdir()}
    for path in status.iterdir():
        assert f"Package: {path.name}\n" in path.read_text()
        assert (image.root / "usr/share/doc" / path.name / "copyright").exists(), path.name


def test_its_bill_of_materials_lists_what_is_in_it_and_nothing_else(image: Image) -> None:
    bill = json.loads((image.root / "usr/share/sbom/headroom.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = {(each["purl"].partition("/")[0], each["name"].lower()) for each in bill["components"] if "purl" in each}
    installed = {
        re.sub(r"[-_.]+", "-", path.name.removesuffix(".dist-info").rpartition("-")[0]).lower()
        for path in image.root.glob("opt/headroom/lib/python3.*/site-packages/*.dist-info")
    }
    packages = {path.name for path in (image.root / "var/lib/dpkg/status.d").iterdir()}
    assert {name for kind, name in listed if kind == "pkg:deb"} == packages
    assert {re.sub(r"[-_.]+", "-", name) for kind, name in listed if kind == "pkg:pypi"} >= installed - {"headroom"}
    assert not any(name in {"pip", "pydantic"} for _, name in listed)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("headroom", "--version"), "headroom"),
        (("git", "ls-remote", "https://127.0.0.1:1/"), "unable to access 'https://127.0.0.1:1/'"),
        (("ssh", "-V"), "OpenSSH"),
        (("ssh-keygen", "-l", "-f", "/none"), "No such file"),
        (("gpg", "--version"), "GnuPG"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_its_programs_load_what_they_need(image: Image, temporary: Path, words: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        run_in(image, list(words), {"/tmp": temporary}, {}), capture_output=True, text=True, check=False
    )
    assert said in done.stdout + done.stderr


def test_it_writes_nowhere_but_in_its_volumes(image: Image, temporary: Path) -> None:
    script = "import os; open('/tmp/own', 'w'); print(os.getuid()); open('/opt/headroom/pyvenv.cfg', 'w')"
    said = run(image, temporary, "/opt/headroom/bin/python", "-c", script, code=1)
    assert said.startswith("65532\n")
    assert "Read-only file system" in said


def test_a_large_placement_compiles_nothing(image: Image, temporary: Path) -> None:
    """As the Deployment's first container does, the compiled loops are taken over to where they could be written."""
    shutil.copytree(image.root / "opt/headroom-compiled", temporary / "compiled")
    for path in [temporary / "compiled", *(temporary / "compiled").rglob("*")]:
        os.chown(path, 65532, 65532)
    script = (
        "from numba.core import event\n"
        "from reconciler.placement.precompile import compile_ahead\n"
        "with event.install_recorder('numba:compile') as recorder: compile_ahead()\n"
        "print('compiled', len(recorder.buffer))"
    )
    said = run(image, temporary, "/opt/headroom/bin/python", "-c", script, NUMBA_CACHE_DIR="/tmp/compiled")
    assert said == "compiled 0\n"


def test_the_demos_scenario_settles_inside(image: Image, temporary: Path) -> None:
    repository = GitRepository(temporary / "repository")
    shutil.copytree(ROOT / "examples-repo", repository.work, dirs_exist_ok=True)
    repository.commit()
    for path in [repository.work, *repository.work.rglob("*")]:
        os.chown(path, 65532, 65532)
    said = run(
        image,
        temporary,
        "headroom",
        "run",
        "--repo=/tmp/repository/work",
        "--revision=main",
        "--path=clusters/production",
        "--cluster=embedded:/tmp/repository/work/snapshots/production",
        "--until-settled",
        "--at-most=120",
        HEADROOM_LISTEN="127.0.0.1:0",
    )
    assert "settled: the cluster is as declared" in said
