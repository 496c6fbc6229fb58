"""A kind of manifest: its names, its schema, and the functions that correct, check and read a document of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.marks import OWN_MANAGER
from reconciler.model.nodes import Labels
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef, Path, SourcePosition
from reconciler.model.view import Manifest

_STATUSES = {status.value: status for status in ConditionStatus}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a manifest comes from: a file, with positions, or the cluster, with field managers."""

    position: SourcePosition | None = None
    inspection: Inspection | None = None
    managers: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def place(self, path: Path) -> SourcePosition | None:
        return self.inspection.position_of(path) if self.inspection is not None else None

    def other_manager(self, field_path: str) -> str | None:
        """The first field manager other than headroom that owns the field or one below it."""
        below = field_path + "."
        for manager in sorted(self.managers):
            if manager.split("-")[0] != OWN_MANAGER and any(
                owned == field_path or owned.startswith(below) for owned in self.managers[manager]
            ):
                return manager
        return None


def _nothing(_inspection: Inspection) -> None:
    """The default of a kind without old spellings, or without rules of its own."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of one API group, in all versions that are accepted."""

    group: str
    name: str
    versions: tuple[str, ...]
    """Newest first."""
    slot: str
    """The field of `Declared` for its typed values."""
    read: Callable[[ObjectRef, Manifest, Origin], Any]
    """Returns the typed value, or None for a partial NodePool. Raises `Invalid`."""
    schema: str
    """The name of the schema of a whole document."""
    namespaced: bool = True
    applied: bool = True
    """Whether headroom applies it. Other kinds are only read: something else deploys them."""
    renamed: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """The paths of fields in old spellings, and what they are called now."""
    correct: Callable[[Inspection], None] = _nothing
    """Turns other old spellings in the inspection's body into those of the newest version. It runs after the renaming."""
    check: Callable[[Inspection], None] = _nothing
    """The rules that a schema cannot express."""
    checks_anything: bool = False
    """Whether `check` also runs on documents that violate the schema."""

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def ref_of(self, manifest: Manifest) -> ObjectRef:
        """The object's identity. An absent namespace is `default`; it is "" for cluster-scoped kinds."""
        metadata = mapping_at(manifest, "metadata")
        namespace = metadata.get("namespace") or DEFAULT_NAMESPACE if self.namespaced else ""
        return ObjectRef(self.group, self.name, _text(namespace), _text(metadata.get("name")))


def labels_of(node: Manifest, *path: str) -> Labels:
    """The string map at a path as sorted pairs."""
    return tuple(sorted((str(key), value) for key, value in mapping_at(node, *path).items() if isinstance(value, str)))


def conditions_of(manifest: Manifest) -> tuple[Condition, ...]:
    """`status.conditions`, sorted by type; malformed ones are left out."""
    conditions = [
        Condition(
            type=_text(condition.get("type")),
            status=_STATUSES.get(_text(condition.get("status")), ConditionStatus.UNKNOWN),
            reason=_text(condition.get("reason")),
            message=_text(condition.get("message")),
        )
        for condition in _conditions(manifest)
    ]
    return tuple(sorted(conditions, key=lambda condition: condition.type))


def condition_times_of(manifest: Manifest) -> Labels:
    """`lastTransitionTime` by condition type, sorted, without absent ones."""
    times = [(_text(item.get("type")), _text(item.get("lastTransitionTime"))) for item in _conditions(manifest)]
    return tuple(sorted((name, time) for name, time in times if time))


def _conditions(manifest: Manifest) -> list[Mapping[str, Any]]:
    conditions = mapping_at(manifest, "status").get("conditions")
    return [item for item in conditions if isinstance(item, Mapping)] if isinstance(conditions, list) else []


def generation_of(manifest: Manifest) -> int | None:
    generation = mapping_at(manifest, "metadata").get("generation")
    return generation if isinstance(generation, int) else None


def created_of(manifest: Manifest) -> str:
    return _text(mapping_at(manifest, "metadata").get("creationTimestamp"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
