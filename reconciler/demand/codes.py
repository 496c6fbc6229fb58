"""Every finding code of demand, in one place.

Some codes have a namesake among those of manifests: there they are found in a repository's documents, here in buffers that
only the cluster has.
"""

from __future__ import annotations

from reconciler.model.findings import Code, Severity

TEMPLATE_AND_SCALABLE = Code("template-and-scalable", Severity.ERROR)
BUFFER_WITHOUT_REFERENCE = Code("buffer-without-reference", Severity.WARNING)
UNKNOWN_STRATEGY = Code("unknown-strategy", Severity.WARNING)
CHUNK_TOO_LARGE = Code("chunk-too-large", Severity.ERROR)
INVALID_ANNOTATION = Code("invalid-annotation", Severity.ERROR)

TARGET_NOT_FOUND = Code("target-not-found", Severity.WARNING)
TARGET_IN_WRONG_GROUP = Code("target-in-wrong-group", Severity.ERROR)
TARGET_IN_ANOTHER_GROUP = Code("target-in-another-group", Severity.WARNING)
TARGET_WITHOUT_PODS = Code("target-without-pods", Severity.WARNING)
SIZE_NOT_KNOWN = Code("size-not-known", Severity.WARNING)
LIMITS_MATCH_NOTHING = Code("limits-match-nothing", Severity.WARNING)
BUFFER_TOO_LARGE = Code("buffer-too-large", Severity.ERROR)
PERCENTAGE_IGNORED = Code("percentage-ignored", Severity.WARNING)
DIALECTS_DIFFER = Code("dialects-differ", Severity.INFO)
SCHEDULE_NOT_FOUND = Code("schedule-not-found", Severity.ERROR)
STATUS_OF_ANOTHER = Code("status-of-another", Severity.WARNING)
HALF_CONSUMPTION = Code("half-consumption", Severity.WARNING)
REQUEST_NOT_FOUND = Code("request-not-found", Severity.WARNING)
PODS_BEFORE_ANSWER = Code("pods-before-answer", Severity.WARNING)
IMMUTABLE_FIELD = Code("immutable-field", Severity.ERROR)
SERVED_TWICE = Code("served-twice", Severity.WARNING)

ALL: tuple[Code, ...] = tuple(
    sorted((value for value in list(globals().values()) if isinstance(value, Code)), key=lambda code: code.name)
)
