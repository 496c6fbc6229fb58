"""The order of a plan's writes, and the inventory around them.

Members have the set's id as a label, so that headroom finds its objects in the cluster alone. The parent says in which kinds and
namespaces members may be. Beyond the KEP, it also stores what must outlive its objects.

The order makes a kill between any two steps harmless. First the inventory records where members may be, then objects are applied.
Then the inventory records what must outlive its objects, and only then is anything deleted. It shrinks last, once the deletions
have succeeded. The next pass continues from what it finds.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from reconciler import __version__
from reconciler.model.changes import Annotate, Apply, ApplyStatus, ChangeSet, Delete, Outcome, Write, WriteResult
from reconciler.model.errors import Invalid
from reconciler.model.marks import (
    APPLYSET_PREFIX,
    PART_OF_LABEL,
    PATH_ANNOTATION,
    REQUESTED_AT_ANNOTATION,
    SUSPEND_ANNOTATION,
)
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Inventory
from reconciler.model.view import ClusterView, Manifest
from reconciler.ports import Cluster

ID_LABEL = "applyset.kubernetes.io/id"
TOOLING = "applyset.kubernetes.io/tooling"
GROUP_KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
MEMORY_KEY = "memory.json"


@dataclass(frozen=True, slots=True)
class InventoryParent:
    """The ConfigMap that lists what one daemon applied. path: the folder in the repository that the daemon reads; None where unknown."""

    namespace: str = "headroom-system"
    name: str = "headroom"
    path: str | None = None

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef("", "ConfigMap", self.namespace, self.name)

    @property
    def id(self) -> str:
        return applyset_id(self.ref)

    @property
    def words(self) -> str:
        """`headroom-system/headroom`."""
        return f"{self.namespace}/{self.name}"

    def belongs_to(self, recorded: str) -> bool:
        """Whether an inventory with this recorded path is this daemon's. Two folders with one inventory would delete each other's
        objects in every pass."""
        return not recorded or self.path is None or recorded == self.path


def applyset_id(parent: ObjectRef) -> str:
    """The id of the set with this parent, computed as in KEP-3659."""
    digest = hashlib.sha256(f"{parent.name}.{parent.namespace}.{parent.kind}.{parent.group}".encode()).digest()
    return f"{APPLYSET_PREFIX}{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def group_kind(ref: ObjectRef) -> str:
    """`NodePool.karpenter.sh`, or `PodTemplate` in the core group."""
    return f"{ref.kind}.{ref.group}" if ref.group else ref.kind


def parent_manifest(parent: InventoryParent, inventory: Inventory) -> Manifest:
    """The parent's manifest to apply. Equal content gives equal bytes. It has the version that it replaces, so that nothing is lost of what
    another client has written since."""
    path = inventory.path if parent.path is None else parent.path
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": parent.name,
            "namespace": parent.namespace,
            "labels": {ID_LABEL: parent.id},
            **({"resourceVersion": inventory.version} if inventory.version else {}),
            "annotations": {
                TOOLING: f"headroom/v{__version__}",
                GROUP_KINDS: ",".join(inventory.group_kinds),
                NAMESPACES: ",".join(inventory.namespaces),
                **({PATH_ANNOTATION: path} if path else {}),
            },
        },
        "data": {MEMORY_KEY: records_text(inventory.records)},
    }


def records_text(records: Mapping[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(records, order="deterministic"), indent=1).decode()


def records_of(data: Mapping[str, str]) -> dict[str, Any]:
    """The records in a parent's data. Raises `Invalid` if they cannot be read: without them finished requests would run again."""
    try:
        return msgspec.json.decode(data.get(MEMORY_KEY) or "{}", type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Invalid(f"{MEMORY_KEY} is not the JSON that headroom wrote ({error})") from error


def inventory_in(annotations: Mapping[str, str], data: Mapping[str, str], version: str) -> Inventory:
    """What the parent says. Its members are found by their labels. Raises `Invalid`."""
    return Inventory(
        records=records_of(data),
        recorded=True,
        group_kinds=_listed(annotations.get(GROUP_KINDS, "")),
        namespaces=_listed(annotations.get(NAMESPACES, "")),
        suspended=annotations.get(SUSPEND_ANNOTATION) == "true",
        path=annotations.get(PATH_ANNOTATION, ""),
        version=version,
        requested_at=annotations.get(REQUESTED_AT_ANNOTATION, ""),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(sorted(filter(None, text.split(","))))


Progress = Callable[[], None]
"""Called before each call to the cluster."""

Forget = Callable[[Mapping[str, Any], Iterable[str]], Mapping[str, Any]]

_TURNS = (Apply, Annotate, ApplyStatus, Delete)
_KIND_TURNS = {"NodePool": -2, "PodTemplate": -1, "NodeClaim": 1}
"""Others have 0: what buffers and NodeClaims refer to is written before them."""
MODIFIED = "the object has been modified"
"""Part of the API server's message when a resourceVersion is not the newest (apimachinery's NewConflict)."""
_HOPELESS = 3
"""After this many failed calls in a row the connection must be the reason, and the rest is not tried."""
_WEBHOOK = "failed calling webhook"
"""Part of the API server's message when an admission webhook does not answer (apiserver's webhook dispatcher). Then only the rest of that
kind is not tried."""


def carry_out(
    cluster: Cluster,
    writes: Sequence[Write],
    *,
    parent: InventoryParent,
    view: ClusterView,
    records: Mapping[str, Any],
    first: Mapping[str, Any] | None = None,
    forget: Forget = lambda records, _: records,
    progress: Progress = lambda: None,
) -> ChangeSet:
    """Tries everything in a dry run first; what is refused there is left out, and the rest is written. Results in order of writing.

    A write without an effect is not sent. records: what the inventory is to remember from now on. first: the part that must be
    written before anything else. forget: removes from the records what was not created after all, by name.
    """

    def make(index: int, failure: str) -> None:
        write = ordered[index]
        if failure:
            results[index] = WriteResult(write, Outcome.SKIPPED, f"the inventory could not be written: {failure}")
            return
        progress()
        results[index] = _result(cluster, write)

    ordered = sorted(writes, key=_rank)
    results = _rehearsed(cluster, ordered, progress)
    todo = [index for index in range(len(ordered)) if index not in results]
    deletions = [index for index in todo if isinstance(ordered[index], Delete)]
    others = [index for index in todo if not isinstance(ordered[index], Delete)]
    record = _Record(cluster, parent, view, progress)
    grown = record.grown(ordered[index].ref for index in others if _is_member(ordered[index], parent))
    failure = record.write(grown, {**view.inventory.records, **(first or {})}) if others else ""
    for index in others:
        make(index, "" if isinstance(ordered[index], Annotate) else failure)
    records = forget(records, [item.write.ref.name for item in results.values() if not item.ok])
    failure = failure or record.write(grown if deletions else record.left(results.values()), records)
    for index in deletions:
        make(index, failure)
    if deletions and not failure:
        record.write(record.left(results.values()), records)
    return ChangeSet((*(results[index] for index in sorted(results)), *record.failures))


def _rank(write: Write) -> tuple[int, int]:
    """The order of writes: pools and templates before objects that refer to them, NodeClaims after their pools, deletions last."""
    return _TURNS.index(type(write)), _KIND_TURNS.get(write.ref.kind, 0) if isinstance(write, Apply) else 0


def _is_member(write: Write, parent: InventoryParent) -> bool:
    if not isinstance(write, Apply):
        return False
    labels = (write.manifest.get("metadata") or {}).get("labels") or {}
    return bool(labels.get(PART_OF_LABEL) == parent.id)


def _rehearsed(cluster: Cluster, writes: Sequence[Write], progress: Progress) -> dict[int, WriteResult]:
    """By index, the results of writes that the server would refuse, and of those without an effect."""
    results: dict[int, WriteResult] = {}
    failed = Counter[str]()
    for index, write in enumerate(writes):
        kind = f"{type(write).__name__} {write.ref.kind}"
        if max(failed["all"], failed[kind]) >= _HOPELESS:
            results[index] = WriteResult(write, Outcome.FAILED, "not tried: the calls before it failed")
            continue
        progress()
        result = _result(cluster, write, dry_run=True)
        if result.outcome is Outcome.FAILED:
            failed[kind if _WEBHOOK in result.message else "all"] += 1
        else:
            failed["all"] = failed[kind] = 0
        if result.outcome is not Outcome.APPLIED:
            results[index] = result
    return results


def _result(cluster: Cluster, write: Write, *, dry_run: bool = False) -> WriteResult:
    """What became of one write. What headroom fails to send is this object's result, and the others are written."""
    try:
        return cluster.write(write, dry_run=dry_run)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        why = f"headroom failed to write it, which is a defect: {type(error).__name__}: {error}"
        return WriteResult(write, Outcome.REFUSED, why)


class _Record:
    """The inventory's parent after the writes so far."""

    def __init__(self, cluster: Cluster, parent: InventoryParent, view: ClusterView, progress: Progress) -> None:
        self._cluster = cluster
        self._progress = progress
        self._parent = parent
        self._known = view.inventory
        self._needs_namespace = bool(view.namespaces) and parent.namespace not in view.namespaces
        self.failures: list[WriteResult] = []

    def grown(self, refs: Iterable[ObjectRef]) -> Inventory:
        """As recorded, with the kinds and namespaces of these members too."""
        known = self._known
        return self._covering({*known.members, *refs}, known.group_kinds, known.namespaces)

    def left(self, results: Iterable[WriteResult]) -> Inventory:
        """After these results. A member counts if its deletion failed, or if it may have been created."""
        members = set(self._known.members)
        for result in results:
            if isinstance(result.write, Delete) and result.ok:
                members.discard(result.write.ref)
            elif _is_member(result.write, self._parent) and (result.ok or result.outcome is Outcome.FAILED):
                members.add(result.write.ref)
        return self._covering(members)

    def write(self, wanted: Inventory, records: Mapping[str, Any]) -> str:
        """Writes the parent, unless it is as it should be; returns what went wrong, "" for nothing."""
        known, covers = self._known, (wanted.group_kinds, wanted.namespaces)
        same = covers == (known.group_kinds, known.namespaces) and records_text(records) == records_text(known.records)
        if same and (known.recorded or covers == ((), ())):
            return ""
        if self._needs_namespace:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._parent.namespace}}
            made = self._cluster.write(Apply(ObjectRef("", "Namespace", "", self._parent.namespace), namespace))
            self._needs_namespace = not made.ok
        wanted = replace(wanted, records=records, version=known.version)
        self._progress()
        # Forced, since the labels and annotations belong to the ApplySet, whoever changed them.
        manifest = parent_manifest(self._parent, wanted)
        result = self._cluster.write(Apply(self._parent.ref, manifest, "keep the inventory", force=True))
        if not result.ok:
            if MODIFIED in result.message:
                result = replace(
                    result, message="another client has written it since this pass began; the next pass reads it again"
                )
            self.failures.append(result)
            return result.message or result.outcome.value
        self._known = replace(wanted, recorded=True, version=result.version)
        return ""

    def _covering(self, refs: set[ObjectRef], kinds: Iterable[str] = (), namespaces: Iterable[str] = ()) -> Inventory:
        """The inventory that says in which kinds and namespaces these members are, and names these others."""
        others = {*namespaces, *(ref.namespace for ref in refs)} - {"", self._parent.namespace}
        return replace(
            self._known,
            group_kinds=tuple(sorted({*kinds, *map(group_kind, refs)})),
            namespaces=tuple(sorted(others)),
        )
