"""Builds the image without a container engine, and unpacks its root file system: `python -m tests.image.build`.

buildah builds the Dockerfile as it is. Its base is made of Debian's packages and has the name that the Dockerfile asks for, so no registry
of images is needed. Everything lies in ~/.cache/headroom/image, and a build is made once for what goes into it. Where Debian's mirror and
Python's packages come from is what the machine itself is set up with.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.builds import cache_folder

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "Dockerfile",
    "requirements.lock",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "reconciler",
    "templates",
    "config",
    "examples-repo",
)
"""What the Dockerfile copies, and itself."""
SUITE = "trixie"
PROGRAMS = ("buildah", "mmdebstrap")


@dataclass(frozen=True)
class Image:
    """root: its root file system, unpacked. config: its environment, user and command, as in the OCI specification."""

    root: Path
    config: dict[str, Any]

    @property
    def bytes(self) -> int:
        """What its files take, each counted once."""
        files = {(each.lstat().st_ino, each.lstat().st_size) for each in self.root.rglob("*") if not each.is_dir()}
        return sum(size for _, size in files)

    @property
    def environment(self) -> dict[str, str]:
        return dict(str(each).partition("=")[::2] for each in self.config["Env"])


def folder() -> Path:
    return cache_folder().parent / "image"


def image() -> Image:
    """The image of the checkout as it stands; built if it is not there."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = folder() / _key()
        if not (built / "config.json").exists():
            _forget_others()
            _build(built)
        return Image(built / "root", json.loads((built / "config.json").read_text()))


def missing() -> str:
    """What has to be installed before an image can be built here; "" if nothing."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if os.geteuid() != 0:
        return "the image can be built and run by root alone"
    return f"the image is built with {' and '.join(absent)}: install Debian's packages of these names" if absent else ""


def _key() -> str:
    """Changes with every file that goes into the image."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in sorted(listed.stdout.split("\0")):
        path = ROOT / name
        if name and path.is_file():
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _forget_others() -> None:
    """But the latest, which tests of another checkout may be using: an image takes 350 MB, and every change makes another."""
    built = sorted(folder().glob("*/root"), key=lambda root: root.parent.stat().st_mtime)
    for other in (*built[:-1], *folder().glob("tmp*/storage")):  # the latter are of builds that were killed
        shutil.rmtree(other.parent)


def _build(target: Path) -> None:
    started = time.monotonic()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        buildah = _Buildah(Path(scratch))
        buildah.base(_base())
        settings = Path(scratch, "pip.conf")
        settings.write_text(_pip_settings())
        certificates = os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
        buildah.run(
            "bud",
            "--pull-never",
            "--network=host",
            f"--volume={settings}:/etc/pip.conf:ro",
            f"--volume={certificates}:/etc/ssl/certs/ca-certificates.crt:ro",
            f"--volume={certificates}:{certificates}:ro",
            "--tag=headroom",
            str(ROOT),
        )
        config = json.loads(buildah.run("inspect", "--type=image", "headroom"))["OCIv1"]["config"]
        container = buildah.run("from", "--pull-never", "headroom").strip()
        shutil.rmtree(target / "root", ignore_errors=True)
        subprocess.run(["cp", "--archive", buildah.run("mount", container).strip(), target / "root"], check=True)
        buildah.run("umount", container)
    (target / "config.json").write_text(json.dumps(config))
    sys.stderr.write(f"image: built in {time.monotonic() - started:.0f} s\n")


class _Buildah:
    """buildah with storage of its own, for which the kernel needs to know nothing of overlays."""

    def __init__(self, scratch: Path) -> None:
        storage = scratch / "storage.conf"
        storage.write_text(f'[storage]\ndriver = "vfs"\nrunroot = "{scratch}/run"\ngraphroot = "{scratch}/storage"\n')
        own = {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot", "CONTAINERS_STORAGE_CONF": str(storage)}
        self._environment = {**os.environ, **own}

    def run(self, *words: str) -> str:
        done = subprocess.run(["buildah", *words], env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            message = f"buildah {words[0]} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
            raise RuntimeError(message)
        return done.stdout

    def base(self, archive: Path) -> None:
        """An image of the name after FROM: Debian's Python where the official image has its own."""
        name = re.search(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        assert name is not None
        container = self.run("from", "scratch").strip()
        self.run("add", "--quiet", container, str(archive), "/")
        root = Path(self.run("mount", container).strip())
        for link in ("python", "python3"):
            root.joinpath("usr/local/bin", link).symlink_to("/usr/bin/python3")
        self.run("umount", container)
        self.run("commit", "--quiet", "--rm", container, f"docker.io/library/{name.group(1)}")


def _base() -> Path:
    """Debian's packages for it, as of this week."""
    archive = folder() / f"base-{SUITE}-{time.strftime('%G-%V')}.tar"
    if not archive.exists():
        for old in folder().glob("base-*.tar*"):
            old.unlink()
        scratch = archive.with_suffix(".tar.new")
        packages = "--include=python3,python3-venv,ca-certificates"
        command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=tar", packages]
        subprocess.run(
            [*command, SUITE, scratch, f"deb {_mirror()} {SUITE} main"], check=True, stdin=subprocess.DEVNULL
        )
        scratch.rename(archive)
    return archive


def _mirror() -> str:
    """Where this machine's own Debian is from, as apt knows it once its lists are there."""
    told = re.search(r"^VERSION_CODENAME=(\S+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    command = [
        "apt-get",
        "indextargets",
        "--format",
        "$(SITE) $(COMPONENT) $(RELEASE) $(CODENAME)",
        "Created-By: Packages",
    ]
    for _ in range(2):
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for site, component, *names in map(str.split, listed.splitlines()):
            if told is not None and component == "main" and told.group(1) in names:
                return site
        subprocess.run(["apt-get", "update", "-qq"], check=True)
    raise RuntimeError("apt knows no Debian mirror here: the image's base is made of its packages")


def _pip_settings() -> str:
    """pip's settings on this machine, from its files and its environment, as one file; folders of this machine are not in the build."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    found = dict(re.findall(r"^(?:global|install|:env:)\.([a-z-]+)='(.*)'$", listed, re.MULTILINE))
    return "[global]\n" + "".join(
        f"{name} = {value}\n" for name, value in found.items() if name not in {"find-links", "cert"}
    )


if __name__ == "__main__":
    if missing():
        sys.exit(missing())
    made = image()
    sys.stdout.write(f"{made.root}: {made.bytes / 1e6:.0f} MB\n")
