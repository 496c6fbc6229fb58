"""Builds the control plane's programs with Go into a cache outside the repository.

Called by `programs` for what it found nowhere else, and by `python -m tests.controlplane
--build-only`. A cached build needs no Go: data files are copied next to the programs.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.controlplane.go_modules import DataTree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.go_modules import DataFiles, Module

INSTALL_GO = (
    "install Go {version} or newer (https://go.dev/dl/), or set HEADROOM_CONTROLPLANE_ASSETS "
    "to a folder with the programs"
)


class ProgramsMissingError(RuntimeError):
    """A program is neither installed nor cached, and there is no Go to build it with."""


def cache_folder() -> Path:
    """Where builds are kept, shared by all checkouts."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "headroom" / "controlplane"


def cached(module: Module) -> Path | None:
    """Folder with the complete build of a module as it stands, or None."""
    folder = cache_folder() / module.key()
    return folder if _is_complete(folder, module) else None


def build(module: Module) -> Path:
    """Build a module into the cache, unless another process has meanwhile; return its folder."""
    go = find_go(module)
    root = cache_folder()
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root / f".{module.name}.lock"):
        done = cached(module)
        if done is not None:
            return done
        # What a killed build left; nobody else builds this module while we hold the lock.
        for stale in root.glob(f".{module.name}.building-*"):
            shutil.rmtree(stale, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{module.name}.building-", dir=root))
        # mkdtemp makes it private to the user; a cache may be shared.
        scratch.chmod(0o755)
        _build_into(scratch, module, go)
        target = root / module.key()
        shutil.rmtree(target, ignore_errors=True)
        scratch.rename(target)
        return target


def find_go(module: Module) -> str:
    """Path of a Go command that is new enough for a module, or ProgramsMissingError."""
    needed = module.go_version()
    hint = INSTALL_GO.format(version=needed)
    go = shutil.which("go")
    if go is None:
        message = f"the test control plane has to be built and there is no Go: {hint}"
        raise ProgramsMissingError(message)
    # Asked inside the module, since a recent Go fetches the toolchain that go.mod wants.
    asked = _run_go(go, module, "env", "GOVERSION", check=False)
    if asked.returncode != 0 or _release(asked.stdout) < _release(needed):
        said = (asked.stdout if asked.returncode == 0 else asked.stderr).strip()
        message = f"the Go on the PATH is too old to build the test control plane ({said}): {hint}"
        raise ProgramsMissingError(message)
    return go


def _is_complete(folder: Path, module: Module) -> bool:
    return all((folder / name).exists() for name in module.asset_names)


def _build_into(folder: Path, module: Module, go: str) -> None:
    _say(f"building {module.name} into {cache_folder()}; some minutes the first time")
    for program in module.programs:
        started = time.monotonic()
        _run_go(
            go,
            module,
            "build",
            "-trimpath",
            "-buildvcs=false",
            *([f"-tags={','.join(module.tags)}"] if module.tags else []),
            f"-ldflags={module.linker_flags()}",
            f"-o={folder / program.name}",
            program.package,
        )
        _say(f"built {program.name} in {time.monotonic() - started:.0f} s")
    for data in module.data:
        listed = _run_go(go, module, "list", "-m", "-f", "{{.Dir}}", data.dependency)
        source = Path(listed.stdout.strip())
        if isinstance(data, DataTree):
            _copy_tree(folder / data.name, source, data)
        else:
            _copy_files(folder, source, data)


def _copy_tree(target: Path, source: Path, data: DataTree) -> None:
    for file in sorted(file for name in data.folders for file in (source / name).rglob("*") if file.is_file()):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def _copy_files(folder: Path, source: Path, data: DataFiles) -> None:
    files = [file for pattern in data.patterns for file in sorted(source.glob(pattern))]
    if not files:
        message = f"{data.dependency} has no files like {', '.join(data.patterns)}"
        raise FileNotFoundError(message)
    target = folder / data.name
    if data.folder:
        target.mkdir()
    for file in files:
        # Contents only: Go keeps its module cache read-only.
        shutil.copyfile(file, target / file.name if data.folder else target)


def _run_go(go: str, module: Module, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    # -mod=readonly: what is built is what go.sum pins, whatever the user's own flags say.
    environment = {**os.environ, "CGO_ENABLED": str(int(module.cgo)), "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    result = subprocess.run(
        [go, *arguments], cwd=module.folder, env=environment, capture_output=True, text=True, check=False
    )
    if check and result.returncode != 0:
        message = f"go {arguments[0]} failed in {module.folder}:\n{result.stderr[-4000:]}"
        raise RuntimeError(message)
    return result


def _release(version: str) -> tuple[int, ...]:
    """The numbers of `go1.26.8` or `1.26`; a pre-release counts as its release."""
    found = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the system frees it if this one dies."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting for another build of {path.name.strip('.').removesuffix('.lock')}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    sys.stderr.write(f"controlplane: {line}\n")
    sys.stderr.flush()
