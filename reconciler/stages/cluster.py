"""Reads the cluster, and lays what the repository declares over what the cluster has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reconciler.manifests.declared import live_declared
from reconciler.manifests.in_force import in_force
from reconciler.manifests.local_budgets import in_utc, named_as_written
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.balloons import DEPLOYMENT_KIND
from reconciler.model.pass_memory import PassMemory
from reconciler.ports import Catalog, Cluster
from reconciler.stages.manifests import emptied
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class ReadCluster:
    phase: ClassVar[str] = "view"

    cluster: Cluster
    catalog: Catalog
    allow_empty: bool
    memory: PassMemory = field(default_factory=PassMemory)

    def run(self, state: PassState) -> PassState:
        view = self.cluster.view()
        live = live_declared(view, self.memory)
        local = in_utc(state.repository, state.now)
        forms = in_force(local.declared, live, view.objects, view.apis)
        # After a restart only the inventory tells what was declared before. The buffer of balloon pods may be in the cluster only.
        was_declared = any(ref.kind != DEPLOYMENT_KIND for ref in view.inventory.members)
        is_emptied = was_declared and not state.repository.documents and not self.allow_empty
        return replace(
            state,
            tree=emptied(state.tree) if is_emptied and not state.repository.broken_files else state.tree,
            view=view,
            suspended=state.suspended or view.inventory.suspended,
            live=live,
            repository=forms.repository,
            effective=replace(forms.effective, node_pools=named_as_written(forms.effective.node_pools, local.pools)),
            local_budgets=local.pools,
            findings=(
                *view.findings,
                *forms.repository.findings,
                *forms.findings,
                *local.findings,
                *schedule_findings(forms.repository.schedules, state.now),
            ),
            instance_types=tuple(self.catalog.instance_types(view)),
        )
