"""Every finding code, in one place: a code is stable, has one severity and one page in docs/findings."""

from __future__ import annotations

from reconciler.model.findings import Code, Severity


def _error(name: str) -> Code:
    return Code(name, Severity.ERROR)


def _warning(name: str) -> Code:
    return Code(name, Severity.WARNING)


def _info(name: str) -> Code:
    return Code(name, Severity.INFO)


# Files and documents.
NOT_UTF8 = _error("not-utf8")
YAML_SYNTAX = _error("yaml-syntax")
TEMPLATE_NOT_RENDERED = _error("template-not-rendered")
DUPLICATE_KEY = _error("duplicate-key")
FILE_TOO_LARGE = _error("file-too-large")
LEFT_OUT = _error("left-out")
TOO_MANY_DOCUMENTS = _error("too-many-documents")
NESTED_TOO_DEEP = _error("nested-too-deep")
TOO_MANY_ALIASES = _error("too-many-aliases")
NOT_JSON = _error("not-json")
NOT_READ = _error("not-read")
NOT_AN_OBJECT = _info("not-an-object")
FOREIGN_KIND = _info("foreign-kind")
OTHER_KINDS = _info("other-kinds")
UNKNOWN_KIND = _error("unknown-kind")
UNKNOWN_VERSION = _error("unknown-version")
NOT_SERVED = _warning("not-served")

# Structure.
MISSING_FIELD = _error("missing-field")
WRONG_TYPE = _error("wrong-type")
INVALID_VALUE = _error("invalid-value")
UNKNOWN_FIELD = _warning("unknown-field")
MISSPELT_FIELD = _error("misspelt-field")
FIELD_NOT_SERVED = _error("field-not-served")
REFERENCE_LOST = _error("reference-lost")
SERVER_FIELD = _info("server-field")
OLD_SPELLING = _warning("old-spelling")
UNLIKELY_QUANTITY = _warning("unlikely-quantity")
UNKNOWN_ANNOTATION = _warning("unknown-annotation")
MISSPELT_ANNOTATION = _error("misspelt-annotation")
INVALID_ANNOTATION = _error("invalid-annotation")
ANNOTATION_WITHOUT_EFFECT = _warning("annotation-without-effect")

# Buffers.
TEMPLATE_AND_SCALABLE = _error("template-and-scalable")
TEMPLATE_WITHOUT_SIZE = _error("template-without-size")
BUFFER_WITHOUT_REFERENCE = _warning("buffer-without-reference")
NEGATIVE_LIMIT = _warning("negative-limit")
BUFFER_WITHOUT_SIZE = _warning("buffer-without-size")
UNKNOWN_STRATEGY = _warning("unknown-strategy")
DEADLINE_IGNORED = _warning("deadline-ignored")
ONE_CAPACITY = _error("one-capacity")
BUFFER_TOO_LARGE = _error("buffer-too-large")
CHUNK_TOO_LARGE = _error("chunk-too-large")
CAPACITY_TARGET_MISMATCH = _error("capacity-target-mismatch")

# Provisioning requests.
FOREIGN_CLASS = _info("foreign-class")
INVALID_PARAMETER = _warning("invalid-parameter")
UNKNOWN_PARAMETER = _warning("unknown-parameter")
PARAMETER_NOT_ALLOWED = _error("parameter-not-allowed")
RESERVE_NOT_TOLERATED = _error("reserve-not-tolerated")
HALF_CONSUMPTION = _warning("half-consumption")
IMMUTABLE_FIELD = _error("immutable-field")

# Node pools and overlays.
REMOVED_REASON = _error("removed-reason")
REASONS_MATCH_NOTHING = _warning("reasons-match-nothing")
UNHEALTHY_REASON = _warning("unhealthy-reason")
SCHEDULE_WITHOUT_DURATION = _error("schedule-without-duration")
ALWAYS_ZERO = _warning("always-zero")
BUDGET_NEVER_BINDS = _warning("budget-never-binds")
BUDGET_NOT_EVALUATED = _warning("budget-not-evaluated")
DAY_OR_WEEKDAY = _warning("day-or-weekday")
NO_BUDGETS = _warning("no-budgets")
SCHEDULE_NEVER_HITS = _warning("schedule-never-hits")
TOO_MANY_BUDGETS = _error("too-many-budgets")
UNBOUNDED_OUTSIDE_WINDOWS = _warning("unbounded-outside-windows")
NEVER_READY = _warning("never-ready")
REQUIREMENT_VALUES = _error("requirement-values")
MISSPELT_LABEL = _warning("misspelt-label")
RESTRICTED_LABEL = _error("restricted-label")
UNKNOWN_CAPACITY_TYPE = _warning("unknown-capacity-type")
STATIC_POOL = _error("static-pool")
STATIC_BY_SCHEDULE = _warning("static-by-schedule")
NOT_CONVERTED = _warning("not-converted")
PRICE_AND_ADJUSTMENT = _error("price-and-adjustment")
STANDARD_RESOURCE = _error("standard-resource")

# Schedules.
LIST_ONLY = _error("list-only")
UNKNOWN_TIME_ZONE = _error("unknown-time-zone")
OLD_ZONE_DATA = _warning("old-zone-data")
START_NEVER_COMES = _warning("start-never-comes")
END_NEVER_COMES = _warning("end-never-comes")
OVERLAPPING_BEHAVIORS = _warning("overlapping-behaviors")
OVERLAP_SETTLED = _info("overlap-settled")
UNREACHABLE_BEHAVIOR = _warning("unreachable-behavior")

# Across objects.
SEVERAL_CLUSTERS = _warning("several-clusters")
DUPLICATE_OBJECT = _error("duplicate-object")
NOT_IN_REPOSITORY = _info("not-in-repository")

# What the cluster shows of buffers and requests.
TARGET_NOT_FOUND = _warning("target-not-found")
TARGET_IN_WRONG_GROUP = _error("target-in-wrong-group")
TARGET_IN_ANOTHER_GROUP = _warning("target-in-another-group")
TARGET_WITHOUT_PODS = _warning("target-without-pods")
SIZE_NOT_KNOWN = _warning("size-not-known")
LIMITS_MATCH_NOTHING = _warning("limits-match-nothing")
PERCENTAGE_IGNORED = _warning("percentage-ignored")
DIALECTS_DIFFER = _info("dialects-differ")
CHUNK_TOO_SMALL = _warning("chunk-too-small")
SCHEDULE_NOT_FOUND = _error("schedule-not-found")
STATUS_OF_ANOTHER = _warning("status-of-another")
RESOURCE_CLAIMS = _warning("resource-claims")
REQUEST_NOT_FOUND = _warning("request-not-found")
PODS_BEFORE_ANSWER = _warning("pods-before-answer")
SERVED_TWICE = _warning("served-twice")

# What a plan does, and cannot do.
BUFFER_LEAVES_NO_ROOM = _warning("buffer-leaves-no-room")
CLOCK_SKEW = _warning("clock-skew")
DRIFTED = _warning("drifted")
DRIFT_WAITS = _info("drift-waits")
INVENTORY_IS_NEW = _warning("inventory-is-new")
INVENTORY_OF_ANOTHER_PATH = _error("inventory-of-another-path")
OWNED_ELSEWHERE = _error("owned-elsewhere")
PODS_MAY_WAIT = _warning("pods-may-wait")
POOL_BECOMES_PARTIAL = _error("pool-becomes-partial")
POOL_NOT_PRUNED = _warning("pool-not-pruned")
POOL_NOT_THERE = _error("pool-not-there")
POOL_OVER_LIMIT = _warning("pool-over-limit")
PLACEMENT_REJECTED = _error("placement-rejected")
SHARED_HOSTNAME = _warning("shared-hostname")
STATIC_POOL_CHANGE = _error("static-pool-change")
STATIC_POOL_BLOCKED = _warning("static-pool-blocked")

# Templates, snapshots, and defects of headroom.
SET_ASIDE = _error("set-aside")
TEMPLATE_FAILED = _error("template-failed")
TEMPLATE_NOT_USED = _warning("template-not-used")
UNREAD_FILE = _warning("unread-file")

ALL: tuple[Code, ...] = tuple(
    sorted((value for value in list(globals().values()) if isinstance(value, Code)), key=lambda code: code.name)
)
NAMED = {code.name: code for code in ALL}
