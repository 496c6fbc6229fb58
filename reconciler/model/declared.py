"""What a repository holds: its files at one revision. And everything that it or the cluster declares, as typed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from reconciler.model.buffers import Buffer
from reconciler.model.findings import Finding, Severity
from reconciler.model.nodes import NodeOverlay, NodePool
from reconciler.model.pods import PriorityClass, Workload
from reconciler.model.provisioning_requests import ProvisioningClass, ProvisioningRequest
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.schedules import Schedule
from reconciler.model.view import Manifest, identity_of

REMOVALS_TRAILER = "Headroom-Allow-Removals"
"""The trailer of a commit that lifts the share of what removals may take within an hour."""
_MOST_SKIPPED = 5
"""The most files that are named as reasons. Each is a finding as well."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """Manifests (`.yaml`, `.yml`, `.json`) and templates (`.j2`) under the configured path, without ignored files."""

    revision: str | None
    """`main@sha1:` and 40 hexadecimal digits; None for a plain folder."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Content by path inside the repository (POSIX, without a leading "./")."""
    stalled: tuple[str, str] | None = None
    """Reason and message when the newest state could not be read, and this is the last good tree."""
    rewound: bool = False
    """Whether the branch was force-pushed lately, so that nothing may be pruned or released because of it yet."""
    removals_allowed: bool = False
    """Whether a commit since the last one in force says `Headroom-Allow-Removals: true`."""
    committed: datetime | None = None
    """When the revision was committed; None for a plain folder."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Path and reason of each file left out, such as one that is too large, or a link."""

    @property
    def reasons_to_keep(self) -> tuple[str, ...]:
        """Why objects that this tree no longer declares must stay all the same."""
        reasons = []
        if self.stalled is not None:
            reasons.append(f"the repository is stalled: {self.stalled[1]}")
        if self.rewound:
            reasons.append("the branch was force-pushed a short while ago")
        reasons += [f"{path} was left out: {why}" for path, why in self.skipped[:_MOST_SKIPPED]]
        more = len(self.skipped) - _MOST_SKIPPED
        if more > 0:
            reasons.append(f"{more:,} more {'file was' if more == 1 else 'files were'} left out")
        return tuple(reasons)


@dataclass(frozen=True, slots=True)
class DeclaredManifest:
    """One document to be applied, in the version it was written in, with old spellings corrected.

    position: where it begins. partial: a NodePool without a template; its fields are applied to an existing pool.
    place: finds the position of a field by its path.
    """

    ref: ObjectRef
    manifest: Manifest
    position: SourcePosition
    partial: bool = False
    place: Callable[[str], SourcePosition] | None = field(default=None, compare=False, repr=False)

    def position_of(self, path: str) -> SourcePosition:
        """The position of the field, or of its nearest parent that was written. path: `spec.disruption.budgets[0].nodes`."""
        return self.position if self.place is None else self.place(path)


def located(findings: Iterable[Finding], manifests: Iterable[DeclaredManifest]) -> tuple[Finding, ...]:
    """The findings, with those that name a field moved from the beginning of the document to the field."""
    known = {(item.ref, item.position): item for item in manifests}
    return tuple(_at_its_field(finding, known) for finding in findings)


def _at_its_field(finding: Finding, known: Mapping[tuple[ObjectRef, SourcePosition], DeclaredManifest]) -> Finding:
    if finding.ref is None or finding.position is None or not finding.path:
        return finding
    item = known.get((finding.ref, finding.position))
    return finding if item is None else replace(finding, position=item.position_of(finding.path))


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A document that is sound except for fields that the shipped schema does not have. A cluster may serve a newer one.

    doubts: about these fields. slot, typed: its place and value in `Declared`. manifest: with these fields; None where headroom does not
    apply the kind.
    """

    ref: ObjectRef
    doubts: tuple[Finding, ...]
    slot: str
    typed: Any
    manifest: DeclaredManifest | None

    @property
    def is_broken(self) -> bool:
        """Whether the document is broken unless a cluster knows the fields."""
        return any(finding.severity is Severity.ERROR for finding in self.doubts)


_POD_TEMPLATE = "PodTemplate"


class Absence(NamedTuple):
    """Why nothing is known of an object. words: to follow the object's name. hint: "" where it depends on what refers to the object."""

    words: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """Typed documents, each kind sorted by namespace and name.

    What is broken, or missing from a file with an error, keeps its last good version in force and is never pruned.
    """

    buffers: tuple[Buffer, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    """Complete pools, and live pools with a partial document merged in."""
    workloads: tuple[Workload, ...] = ()
    """Workloads and PodTemplates. Workloads and priority classes are for reference only: headroom does not apply them."""
    priority_classes: tuple[PriorityClass, ...] = ()
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    provisioning_classes: tuple[ProvisioningClass, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    node_overlays: tuple[NodeOverlay, ...] = ()
    manifests: tuple[DeclaredManifest, ...] = ()
    """What headroom applies."""
    findings: tuple[Finding, ...] = ()
    broken_files: frozenset[str] = frozenset()
    """Files with an error of any kind. What such a file does not declare any more may be missing by mistake."""
    broken: frozenset[ObjectRef] = frozenset()
    """Objects whose document is invalid."""
    named_in_broken: Mapping[str, str] = field(default_factory=dict)
    """Names that such files mention, each with a file. An object of that name may have moved there."""
    kept: frozenset[ObjectRef] = frozenset()
    """Objects of which an earlier version is in force, since their present document has errors."""
    doubtful: tuple[Doubtful, ...] = ()
    documents: int = 0
    """How many documents the files hold, of any kind."""
    dormant: Mapping[ObjectRef, str] = field(default_factory=dict)
    """Objects that a schedule keeps out of the cluster at present, and why."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there that headroom would apply, readable or not. Other documents may stand beside it."""
        return not (self.manifests or self.broken or self.broken_files or self.dormant)

    def absence_of(self, ref: ObjectRef) -> Absence:
        """Why nothing is known of an object that another refers to: it does not exist, or its document has errors."""
        if ref not in self.broken:
            return Absence("does not exist")
        positions = (found.position for found in self.findings if found.ref == ref and found.severity is Severity.ERROR)
        where = next((f" ({position})" for position in positions if position is not None), "")
        return Absence(f"has errors{where}, and no earlier version of it is known", "correct its document")

    def without(self, refs: AbstractSet[ObjectRef]) -> Declared:
        """Everything declared except these objects."""
        if not refs:
            return self
        kept = {slot: [value for value in getattr(self, slot) if ref_of(value) not in refs] for slot in SLOTS}
        return replace(self, **in_order(kept))

    def over(self, live: Declared) -> Declared:
        """The repository's objects, with those that only the cluster (`live`) has. Manifests and findings are the repository's.

        For an object in both, the spec comes from the repository; uid and status come from the cluster. Workloads come from
        the cluster where it has them, since headroom applies none.
        """
        merged: dict[str, list[Any]] = {}
        for slot in SLOTS:
            others = {ref_of(value): value for value in getattr(live, slot)}
            merged[slot] = [
                _observed(slot, value, others.pop(ref)) if (ref := ref_of(value)) in others else value
                for value in getattr(self, slot)
            ]
            merged[slot] += others.values()
        return replace(self, **in_order(merged))


SLOTS = (
    "buffers",
    "node_pools",
    "workloads",
    "priority_classes",
    "provisioning_requests",
    "provisioning_classes",
    "schedules",
    "node_overlays",
    "manifests",
)
"""The fields of `Declared` that hold objects: typed values, a field for each kind, and at last the manifests."""


def ref_of(value: Any) -> ObjectRef:
    """The object that a value in one of these fields is."""
    ref = identity_of(value)
    assert ref is not None
    return ref


def in_order(slots: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """The values of each field, sorted."""
    return {
        slot: tuple(sorted(values, key=_by_place if slot == "manifests" else _by_name))
        for slot, values in slots.items()
    }


def _by_name(value: Any) -> tuple[str, str, str, str]:
    ref = ref_of(value)
    return (ref.namespace, ref.name, ref.kind, ref.group)


def _by_place(manifest: DeclaredManifest) -> tuple[ObjectRef, SourcePosition]:
    return (manifest.ref, manifest.position)


_OF_THE_CLUSTER: Mapping[str, tuple[str, ...]] = {
    "buffers": ("created", "status_conditions"),
    "node_pools": ("uid", "unready", "deleting", "hash", "hash_version"),
}
"""By field of `Declared`, what only the live object tells of a declared one. Workloads and requests count as they are in the cluster."""


def _observed(slot: str, own: Any, live: Any) -> Any:
    """The declared value with what the live object tells.

    The live workload counts, since headroom deploys none: its pods are made from the template in the cluster. PodTemplates are applied by
    headroom, so the repository's version counts. The live request counts, since its spec is immutable, even if the document has changed.
    """
    if slot == "workloads" and own.ref.kind == _POD_TEMPLATE:
        return replace(own, generation=live.generation)
    if slot in {"workloads", "provisioning_requests"}:
        return replace(live, position=own.position)
    told = {name: getattr(live, name) for name in _OF_THE_CLUSTER.get(slot, ())}
    return replace(own, **told) if told else own
