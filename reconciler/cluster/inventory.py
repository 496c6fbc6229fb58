"""The inventory: an ApplySet (KEP-3659) whose parent is a ConfigMap.

Members have the set's id as a label, so that headroom finds its objects in the cluster alone. The parent says in which kinds and
namespaces members may be. Beyond the KEP, it also stores what must outlive its objects.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from reconciler import __version__
from reconciler.model.errors import Invalid
from reconciler.model.marks import PATH_ANNOTATION, REQUESTED_AT_ANNOTATION, SUSPEND_ANNOTATION
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Inventory, Manifest

ID_LABEL = "applyset.kubernetes.io/id"
TOOLING = "applyset.kubernetes.io/tooling"
GROUP_KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
MEMORY_KEY = "memory.json"


@dataclass(frozen=True, slots=True)
class InventoryRecord:
    """The parent as it is in the cluster."""

    annotations: Mapping[str, str]
    memory: Mapping[str, Any]
    version: str = ""


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
    return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def group_kind(ref: ObjectRef) -> str:
    """`NodePool.karpenter.sh`, or `PodTemplate` in the core group."""
    return f"{ref.kind}.{ref.group}" if ref.group else ref.kind


def parent_manifest(
    parent: InventoryParent,
    *,
    group_kinds: Iterable[str],
    namespaces: Iterable[str],
    memory: Mapping[str, Any],
    recorded: str = "",
    version: str = "",
) -> Manifest:
    """The parent's manifest to apply. Equal content gives equal bytes. recorded: the path in it so far. version: what it replaces, so that
    nothing is lost of what another client has written since."""
    path = recorded if parent.path is None else parent.path
    others = sorted({name for name in namespaces if name and name != parent.namespace})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": parent.name,
            "namespace": parent.namespace,
            "labels": {ID_LABEL: parent.id},
            **({"resourceVersion": version} if version else {}),
            "annotations": {
                TOOLING: f"headroom/v{__version__}",
                GROUP_KINDS: ",".join(sorted(set(group_kinds))),
                NAMESPACES: ",".join(others),
                **({PATH_ANNOTATION: path} if path else {}),
            },
        },
        "data": {MEMORY_KEY: memory_text(memory)},
    }


def memory_text(memory: Mapping[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(memory, order="deterministic"), indent=1).decode()


def memory_of(data: Mapping[str, str]) -> dict[str, Any]:
    """The memory in a parent's data. Raises `Invalid` if it cannot be read: without it finished requests would run again."""
    try:
        return msgspec.json.decode(data.get(MEMORY_KEY) or "{}", type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Invalid(f"{MEMORY_KEY} is not the JSON that headroom wrote ({error})") from error


def inventory_of(members: Iterable[ObjectRef], record: InventoryRecord | None) -> Inventory:
    """What the parent and its members say."""
    if record is None:
        return Inventory(members=frozenset(members))
    return Inventory(
        members=frozenset(members),
        memory=record.memory,
        recorded=True,
        group_kinds=_listed(record.annotations.get(GROUP_KINDS, "")),
        namespaces=_listed(record.annotations.get(NAMESPACES, "")),
        suspended=record.annotations.get(SUSPEND_ANNOTATION) == "true",
        path=record.annotations.get(PATH_ANNOTATION, ""),
        version=record.version,
        requested_at=record.annotations.get(REQUESTED_AT_ANNOTATION, ""),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(sorted(filter(None, text.split(","))))
