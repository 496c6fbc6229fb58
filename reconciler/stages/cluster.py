"""Reads the cluster, and lays what the repository declares over what the cluster has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reconciler.cluster.inventory import InventoryParent
from reconciler.manifests.declared import live_declared
from reconciler.manifests.in_force import in_force
from reconciler.manifests.local_budgets import in_utc, named_as_written
from reconciler.manifests.node_pool import NODE_POOL
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.buffers import DEPLOYMENT_KIND
from reconciler.model.findings import Finding
from reconciler.model.marks import PATH_ANNOTATION
from reconciler.model.pass_memory import PassMemory
from reconciler.model.view import ClusterView, identity_of
from reconciler.plan.codes import INVENTORY_OF_ANOTHER_PATH
from reconciler.ports import Catalog, Cluster
from reconciler.stages.manifests import emptied
from reconciler.stages.state import InputOrigin, PassState


@dataclass(frozen=True, slots=True)
class ReadCluster:
    phase: ClassVar[str] = "view"

    cluster: Cluster
    catalog: Catalog
    allow_empty: bool
    inventory: InventoryParent
    memory: PassMemory = field(default_factory=PassMemory)

    def run(self, state: PassState) -> PassState:
        failed = state.failed_on(InputOrigin.CLUSTER)
        seen = self.cluster.view()
        view = seen.without({ref: f"{ref} is set aside: {finding.message}" for ref, finding in failed.items()})
        live = live_declared(view, self.memory)
        unread = {found.ref: f"{found.ref}: {found.message}" for found in live.findings if found.ref is not None}
        view = view.without(
            {ref: why for ref, why in unread.items() if ref.kind != NODE_POOL.name}
        )  # pools have gaps already
        if state.on_trial:  # what a later stage leaves undone after an incomplete read must not look like success
            view = replace(view, complete=seen.complete)
        local = in_utc(state.repository, state.now)
        forms = in_force(local.declared, live, view.objects, view.apis)
        # After a restart only the inventory tells what was declared before. The buffer of balloon pods may be in the cluster only.
        was_declared = any(ref.kind != DEPLOYMENT_KIND for ref in view.inventory.members)
        is_emptied = was_declared and state.repository.is_empty and not self.allow_empty
        return replace(
            state,
            tree=emptied(state.tree) if is_emptied else state.tree,
            view=view,
            suspended=state.suspended or view.inventory.suspended,
            live=live,
            repository=forms.repository,
            effective=replace(forms.effective, node_pools=named_as_written(forms.effective.node_pools, local.pools)),
            local_budgets=local.pools,
            findings=(
                *_another_path(self.inventory, view),
                *failed.values(),
                *live.findings,
                *view.findings,
                *forms.repository.findings,
                *forms.findings,
                *local.findings,
                *schedule_findings(forms.repository.schedules, state.now),
            ),
            instance_types=tuple(kind for kind in self.catalog.instance_types(view) if identity_of(kind) not in failed),
        )


def _another_path(inventory: InventoryParent, view: ClusterView) -> tuple[Finding, ...]:
    """The error of a folder that has no inventory of its own."""
    recorded = view.inventory.path
    if inventory.belongs_to(recorded):
        return ()
    code = INVENTORY_OF_ANOTHER_PATH
    message = f"the inventory {inventory.words} lists the objects of {recorded}, and this is {inventory.path}: nothing is written"
    hint = (
        "give each folder an inventory of its own (inventory.name); if the folder was moved, "
        f"kubectl -n {inventory.namespace} annotate configmap {inventory.name} {PATH_ANNOTATION}-"
    )
    return (Finding(code.name, code.severity, message, hint=hint),)
