"""What a kind of manifest is: its names, its schema, and the functions that correct, check and read one document of it.

Every kind module defines one or more `Kind`s; `kinds` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.manifests.document import Path
from reconciler.manifests.inspection import Inspection, mapping_at
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.marks import OWN_MANAGER
from reconciler.model.nodes import Labels
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef, SourcePosition
from reconciler.model.view import Manifest

_STATUSES = {status.value: status for status in ConditionStatus}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a manifest comes from: a file (then it has positions) or the cluster (then it may have field managers)."""

    position: SourcePosition | None = None
    inspection: Inspection | None = None
    managers: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def place(self, path: Path) -> SourcePosition | None:
        return self.inspection.position_of(path) if self.inspection is not None else None

    def other_manager(self, field_path: str) -> str | None:
        """The first field manager, not headroom's own, that owns the field or something below it."""
        below = field_path + "."
        for manager in sorted(self.managers):
            if manager.split("-")[0] != OWN_MANAGER and any(
                owned == field_path or owned.startswith(below) for owned in self.managers[manager]
            ):
                return manager
        return None


def _nothing(_inspection: Inspection) -> None:
    """The default for a kind without old spellings or without rules of its own."""


@dataclass(frozen=True, slots=True)
class Kind:
    """versions: those accepted, newest first; schema: of the whole document, by name; applied: headroom applies it (other
    kinds are context that somebody else deploys); slot: the field of `Declared` that its typed values go to.

    correct: turns old spellings in the inspection's body into the newest version's; check: the rules that a schema cannot
    say (of documents that satisfy the schema; of others too with checks_anything); read: the typed value (None: nothing typed, a partial NodePool), may raise `Invalid`.
    """

    group: str
    name: str
    versions: tuple[str, ...]
    slot: str
    read: Callable[[ObjectRef, Manifest, Origin], Any]
    schema: str | None = None
    namespaced: bool = True
    applied: bool = True
    correct: Callable[[Inspection], None] = _nothing
    check: Callable[[Inspection], None] = _nothing
    checks_anything: bool = False

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def ref_of(self, manifest: Manifest) -> ObjectRef:
        """The identity; an absent namespace is `default`, "" for cluster-scoped kinds."""
        metadata = mapping_at(manifest, "metadata")
        namespace = metadata.get("namespace") or DEFAULT_NAMESPACE if self.namespaced else ""
        return ObjectRef(self.group, self.name, _text(namespace), _text(metadata.get("name")))


def labels_of(node: Manifest, *path: str) -> Labels:
    """The string map at a path as sorted pairs."""
    return tuple(
        sorted((str(key), value) for key, value in mapping_at(node, *path).items() if isinstance(value, str)),
    )


def conditions_of(manifest: Manifest) -> tuple[Condition, ...]:
    """`status.conditions`, sorted by type; what is not a condition is left out."""
    conditions = mapping_at(manifest, "status").get("conditions")
    return tuple(
        sorted(
            (
                Condition(
                    type=_text(condition.get("type")),
                    status=_STATUSES.get(_text(condition.get("status")), ConditionStatus.UNKNOWN),
                    reason=_text(condition.get("reason")),
                    message=_text(condition.get("message")),
                )
                for condition in (conditions if isinstance(conditions, list) else [])
                if isinstance(condition, Mapping)
            ),
            key=lambda condition: condition.type,
        ),
    )


def generation_of(manifest: Manifest) -> int | None:
    generation = mapping_at(manifest, "metadata").get("generation")
    return generation if isinstance(generation, int) else None


def created_of(manifest: Manifest) -> str:
    return _text(mapping_at(manifest, "metadata").get("creationTimestamp"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
