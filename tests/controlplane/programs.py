"""Finds the control plane's programs and the data files that belong to them.

Called by the control plane for each program that it starts. The first place that has an asset
wins: the folder in HEADROOM_CONTROLPLANE_ASSETS, the PATH (programs only), the cache, a build.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.controlplane import builds
from tests.controlplane.builds import ProgramsMissingError
from tests.controlplane.go_modules import MODULES, Module

__all__ = ["ProgramsMissingError", "find_all", "find_data", "find_program"]

ASSETS_VARIABLE = "HEADROOM_CONTROLPLANE_ASSETS"


def find_program(name: str) -> Path:
    """Path of one program (`etcd`, `kube-apiserver`, … `karpenter`, `kwok`, `kueue`)."""
    assets = _assets_folder()
    if assets is not None and os.access(assets / name, os.X_OK):
        return assets / name
    installed = shutil.which(name)
    if installed is not None:
        return Path(installed)
    return _built(name)


def find_data(name: str) -> Path:
    """Path of a data file or folder (`karpenter-crds`, `instance_types.json`, `kwok-stages`)."""
    assets = _assets_folder()
    if assets is not None and (assets / name).exists():
        return assets / name
    return _built(name)


def find_all(modules: tuple[Module, ...] = MODULES) -> dict[str, Path]:
    """Every asset by name, building what is missing; ProgramsMissingError where that cannot be."""
    found: dict[str, Path] = {}
    for module in modules:
        found.update({program.name: find_program(program.name) for program in module.programs})
        found.update({data.name: find_data(data.name) for data in module.data})
    return found


def _assets_folder() -> Path | None:
    value = os.environ.get(ASSETS_VARIABLE)
    if not value:
        return None
    folder = Path(value).expanduser().resolve()
    if not folder.is_dir():
        message = f"{ASSETS_VARIABLE} is {value}, which is not a folder"
        raise ProgramsMissingError(message)
    return folder


def _built(name: str) -> Path:
    module = next(module for module in MODULES if name in module.asset_names)
    folder = builds.cached(module) or builds.build(module)
    return folder / name
