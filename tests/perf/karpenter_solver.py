"""Karpenter's own scheduler as a program: built with Go into the cache outside the repository, fed pods, its answer read.

Used by the placement benchmark to hold headroom against it in the same run.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane import builds
from tests.controlplane.go_modules import Module, Program

_PROGRAM = "karpenter-solver"


class _SolverModule(Module):
    """Lies beside the benchmark, and its own source counts for the cache's key."""

    @property
    def folder(self) -> Path:
        return Path(__file__).parent / "karpenter"

    def key(self) -> str:
        source = hashlib.sha256((self.folder / "main.go").read_bytes()).hexdigest()[:12]
        return f"{super().key()}-{source}"


_MODULE = _SolverModule(name="karpenter-solver", programs=(Program(_PROGRAM, "."),))


@dataclass(frozen=True, slots=True)
class KarpenterAnswer:
    """seconds: of the best run; price: USD an hour when each NodeClaim gets its cheapest offering."""

    seconds: float
    nodes: int
    price: float
    unplaced: int


def solver() -> Path | None:
    """The program, built when it is not there yet; None where there is no Go to build it with."""
    try:
        folder = builds.cached(_MODULE) or builds.build(_MODULE)
    except builds.ProgramsMissingError:
        return None
    return folder / _PROGRAM


def solve(program: Path, manifests: list[dict[str, Any]], *, runs: int) -> KarpenterAnswer:
    """Over pending pods on an empty cluster with one on-demand Linux NodePool and the catalog of its KWOK provider."""
    done = subprocess.run([program, str(runs)], input=json.dumps(manifests), capture_output=True, text=True, check=True)
    return KarpenterAnswer(**json.loads(done.stdout))
