"""Turns the plan into writes: objects from templates, and the statuses that say something new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.manifests.rendered import read_rendered
from reconciler.model.errors import Stalled
from reconciler.model.source import SourceTree
from reconciler.render.environment import Templates
from reconciler.render.writes import render_writes
from reconciler.stages.state import PassState
from reconciler.summary.statuses import status_writes


@dataclass(frozen=True, slots=True)
class Render:
    """packaged: headroom's own templates by name. folder: where the repository keeps its own."""

    phase: ClassVar[str] = "render"

    packaged: Mapping[str, str]
    folder: str

    def run(self, state: PassState) -> PassState:
        """Raises `Stalled` when the checker rejects the placement: nothing of it may be written."""
        if state.broken_rules:
            raise Stalled(
                f"the placement breaks {len(state.broken_rules):,} rules ({state.broken_rules[0]}): nothing is applied",
                reason="PlacementRejected",
                hint="this is a defect of headroom: report it with the snapshot that `headroom snapshot` makes",
            )
        plan = state.required_plan
        rendered = render_writes(
            plan,
            view=state.view,
            node_pools={pool.name: pool for pool in state.effective.node_pools},
            templates=self._templates(state.tree),
            read_document=read_rendered,
        )
        statuses = status_writes(plan, state.view, state.now)
        return replace(state, writes=(*rendered.writes, *statuses), unrendered=rendered.failures)

    def _templates(self, tree: SourceTree) -> Templates:
        """The packaged templates, with the repository's own in front; what they write is checked as strictly."""
        folder = f"{self.folder.strip('/')}/"
        own = {
            path.removeprefix(folder): content.decode(errors="replace")
            for path, content in tree.files.items()
            if path.startswith(folder) and path.endswith(".j2")
        }
        return Templates(self.packaged, own)
