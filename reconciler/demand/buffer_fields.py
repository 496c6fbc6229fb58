"""The field of a buffer's document that a finding is about."""

from __future__ import annotations

from reconciler.demand import codes
from reconciler.model.buffers import Buffer
from reconciler.model.findings import Code
from reconciler.model.marks import PERCENT_OF_ANNOTATION

_OF_ITS_TARGET = frozenset(
    {codes.TARGET_NOT_FOUND, codes.TARGET_WITHOUT_PODS, codes.TARGET_IN_WRONG_GROUP, codes.TARGET_IN_ANOTHER_GROUP}
)
_OF_ITS_GROUP = frozenset({codes.TARGET_IN_WRONG_GROUP, codes.TARGET_IN_ANOTHER_GROUP})


def field_of(buffer: Buffer, code: Code) -> str:
    """Its path; "" for the whole buffer."""
    proposed = buffer.ref.kind == "Buffer"
    if code in _OF_ITS_TARGET:
        if buffer.pod_template is not None:
            return "spec.podTemplateRef.name"
        return f"spec.{'targetRef' if proposed else 'scalableRef'}.{'apiGroup' if code in _OF_ITS_GROUP else 'name'}"
    if code in {codes.BUFFER_TOO_LARGE, codes.PERCENTAGE_IGNORED}:
        by_percentage = buffer.percentage is not None and (buffer.replicas is None or code == codes.PERCENTAGE_IGNORED)
        return "spec.capacity" if proposed else f"spec.{'percentage' if by_percentage else 'replicas'}"
    if code == codes.INVALID_ANNOTATION:
        return f"metadata.annotations['{PERCENT_OF_ANNOTATION}']"
    if code == codes.LIMITS_MATCH_NOTHING:
        return "spec.limits"
    return "spec" if code == codes.SIZE_NOT_KNOWN else ""
