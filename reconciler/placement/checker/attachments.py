"""Volumes: where pods can reach theirs, as kube-scheduler's plugin VolumeBinding judges.

Pods with resource claims may be nowhere, since nobody looks at devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.attachments import NO_PROVISIONER, Storage, VolumeClaim
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.placement.checker.checked_nodes import CheckedNode
from reconciler.placement.checker.node_rules import term_holds


class CheckedVolumes:
    """The cluster's storage, indexed."""

    def __init__(self, storage: Storage) -> None:
        self._claims = {(item.namespace, item.name): item for item in storage.claims}
        self._volumes = {item.name: item for item in storage.volumes}
        self._classes = {item.name: item for item in storage.classes}
        # Of several default classes the last by name counts, since the view does not tell which is the newest.
        self._default = next((item for item in reversed(storage.classes) if item.default), None)

    def misplaced(self, node: CheckedNode, shape: PodShape) -> Iterable[str]:
        """Why one pod may not be on one node."""
        if shape.claims_devices:
            yield "its resource claims are not judged"
        for name in shape.volume_claims:
            claim, words = self._claims.get((shape.namespace, name)), f"claim {shape.namespace}/{name}"
            if claim is None:
                yield f"{words} does not exist"
            elif claim.volume:
                volume = self._volumes.get(claim.volume)
                if volume is None or not claim.bound or not _meets_any(node, volume.terms):
                    yield f"the volume of {words} cannot be had there"
            elif not self._can_be_made(node, claim):
                yield f"no volume for {words} can be had there"

    def _can_be_made(self, node: CheckedNode, claim: VolumeClaim) -> bool:
        """For a claim with WaitForFirstConsumer: whether a volume can be provisioned for the node."""
        found = self._default if claim.storage_class is None else self._classes.get(claim.storage_class)
        if found is None or not found.waits or found.provisioner == NO_PROVISIONER:
            return False
        # Until the volume exists, VolumeBinding allows pods of the claim on no other node than the selected one.
        selected = not claim.selected_node or (node.exists and node.name == claim.selected_node)
        return selected and _meets_any(node, found.topologies)


def _meets_any(node: CheckedNode, terms: Sequence[NodeSelectorTerm]) -> bool:
    return not terms or any(term_holds(node, term) for term in terms)
