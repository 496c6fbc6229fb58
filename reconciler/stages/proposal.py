"""Proposes the plan as documents in Git instead of writing to the cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.manifests.crds import to_yaml
from reconciler.manifests.reading import read_rendered
from reconciler.model.changes import Action, Apply, ChangeSet, Delete, ObjectChange, Outcome, WriteResult
from reconciler.model.errors import Invalid
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest
from reconciler.ports import Proposals, ProposedPlan
from reconciler.render.templates import TemplateSource
from reconciler.render.writes import node_claim_ref, node_pool_document
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class ProposeWrites:
    """Statuses and marks on existing nodes are left out: only the cluster can hold them."""

    phase: ClassVar[str] = "apply"

    proposals: Proposals
    templates: TemplateSource

    def run(self, state: PassState) -> PassState:
        """A repository that could not be read as a whole proposes nothing: what is missing would look like a deletion."""
        plan = state.required_plan
        if state.tree.revision is None or plan.blocked or state.tree.reasons_to_keep:
            return replace(state, change_set=ChangeSet(state.unrendered))
        found, failures = self._documents(state)
        documents = {file_of(ref): to_yaml(manifest) for ref, manifest in found}
        going = {action.node_claim for action in (*plan.node_claims.delete, *plan.node_claims.release)}
        # The document of a placeholder that exists stays in Git, or whoever applies the documents would delete the node.
        standing = {file_of(node_claim_ref(claim.name)) for claim in state.view.node_claims if claim.name not in going}
        standing |= {file_of(failure.write.ref) for failure in failures}
        waiting = tuple(
            f"{item.write.ref} is planned and has no document yet: it {item.message}"
            for item in state.unrendered
            if item.outcome is Outcome.SKIPPED
        )
        proposed = ProposedPlan(plan, state.tree.revision, waiting)
        self.proposals.propose(documents, keep=standing.__contains__, state=proposed)
        told = {failure.write.ref for failure in state.unrendered}
        more = (failure for failure in failures if failure.write.ref not in told)
        return replace(state, change_set=ChangeSet((*state.unrendered, *more)))

    def _documents(self, state: PassState) -> tuple[list[tuple[ObjectRef, Manifest]], list[WriteResult]]:
        """All that should be in force, not only what differs from the cluster; sorted. Second: what no template can be rendered for, whose
        document in Git stays as it is."""
        failures: list[WriteResult] = []
        templates = state.templates or self.templates.of(state.tree.files)
        written = {write.ref: write.manifest for write in state.writes if isinstance(write, Apply)}
        deleted = {write.ref for write in state.writes if isinstance(write, Delete)}
        found = dict(written)
        for item in state.repository.manifests:
            if item.ref in found or item.ref in deleted:
                continue
            manifest = item.manifest
            if item.ref.kind == "NodePool":
                change = ObjectChange(item.ref, Action.UPDATE, manifest=manifest)
                try:
                    manifest = node_pool_document(templates, change, read_rendered)
                except Invalid as failure:
                    failures.append(WriteResult(Apply(item.ref, {}), Outcome.REFUSED, failure.with_hint))
                    continue
            found[item.ref] = manifest
        return sorted(found.items(), key=lambda pair: pair[0]), failures


def file_of(ref: ObjectRef) -> str:
    """One file for each object, such as capacitybuffer.shop.web.yaml. A namespace has no dots, so no two objects share a name."""
    parts = (ref.kind.lower(), *((ref.namespace,) if ref.namespace else ()), ref.name)
    return ".".join(parts).replace("/", "%2F") + ".yaml"
