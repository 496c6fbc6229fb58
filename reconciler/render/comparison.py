"""Renders the same objects with two revisions' templates, so that a reviewer sees changes that no manifest shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from reconciler.model.changes import Action, ObjectChange
from reconciler.model.declared import DeclaredManifest
from reconciler.model.errors import Invalid
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest
from reconciler.render.representative import representative_balloons, representative_creations
from reconciler.render.templates import DocumentTemplates
from reconciler.render.writes import ReadDocument, balloon_document, node_claim_document, node_pool_document

ANY_NODE_CLAIM = ObjectRef("karpenter.sh", "NodeClaim", "", "every placeholder")
"""Stands for all placeholders, which are rendered from one template."""
ANY_BALLOON = ObjectRef("apps", "Deployment", "", "every balloon")


def rendered_pairs(
    before: DocumentTemplates,
    after: DocumentTemplates,
    manifests: Iterable[DeclaredManifest],
    read_document: ReadDocument,
) -> Iterator[tuple[ObjectRef, Manifest, Manifest]]:
    """NodePools of both revisions, a placeholder and balloon pods, as each side renders them. What cannot be rendered is already a finding."""
    if before.own == after.own:
        return
    creation, pool = representative_creations()[0]
    (balloon, _) = representative_balloons()
    with suppress(Invalid):
        yield (
            ANY_BALLOON,
            balloon_document(before, balloon, read_document),
            balloon_document(after, balloon, read_document),
        )
    with suppress(Invalid):
        yield (
            ANY_NODE_CLAIM,
            node_claim_document(before, creation, pool, read_document),
            node_claim_document(after, creation, pool, read_document),
        )
    for item in manifests:
        if item.ref.kind != "NodePool":
            continue
        change = ObjectChange(item.ref, Action.UPDATE, manifest=item.manifest)
        with suppress(Invalid):
            yield (
                item.ref,
                node_pool_document(before, change, read_document),
                node_pool_document(after, change, read_document),
            )
