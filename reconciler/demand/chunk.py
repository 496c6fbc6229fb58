"""The virtual pod that a chunk is: a workload's pod shape made ready to be placed without ever existing."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.buffers import Buffer, virtual_labels
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.requirements import Operator, Requirement

SHOWN_IN_FULL = 10**15
"""A larger number of chunks is a typing error, and its digits are not printed."""


def virtual_pod(shape: PodShape, buffer: Buffer) -> PodShape:
    """The shape with the labels of a buffer's virtual pods (Karpenter RFC "CapacityBuffer"), in the buffer's namespace.

    Volume claims and the priority class go: no claim exists for a virtual pod, and by the RFC it has the lowest priority.
    ResourceClaims that were generated for a live pod belong to it. Another pod would get its own from the templates.
    """
    labels = dict(shape.labels) | virtual_labels(buffer.ref)
    return replace(
        shape,
        namespace=buffer.ref.namespace,
        labels=tuple(sorted(labels.items())),
        volume_claims=(),
        ephemeral_claims=(),
        resource_claim_templates=tuple(
            sorted((*shape.resource_claim_templates, *(claim.template for claim in shape.generated_claims)))
        ),
        generated_claims=(),
        priority_class_name="",
    )


def chunks_in_words(count: int) -> str:
    """`1 chunk`, `2,000 chunks`."""
    return f"{count:,} {'chunk' if count == 1 else 'chunks'}" if count < SHOWN_IN_FULL else "too many chunks"


def on_nodes(shape: PodShape, names: tuple[str, ...]) -> PodShape:
    """The shape on these nodes only."""
    here = Requirement("metadata.name", Operator.IN, names)
    terms = shape.required_node_terms or (NodeSelectorTerm(),)
    return replace(shape, required_node_terms=tuple(replace(term, fields=(*term.fields, here)) for term in terms))
