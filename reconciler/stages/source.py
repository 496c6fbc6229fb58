"""Reads the repository: its newest tree, or the last good one while it is stalled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.ports import Source
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class ReadSource:
    phase: ClassVar[str] = "git"

    source: Source

    def run(self, state: PassState) -> PassState:
        return replace(state, tree=self.source.read())
