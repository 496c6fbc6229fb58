"""What volumes say about where a pod can run. Decoded by cluster, judged by placement's pre-pass and its checker."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.pods import NodeSelectorTerm

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""A StorageClass with this provisioner makes no volumes: its claims wait for volumes that somebody else makes."""


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """terms: its required node affinity, of which one must hold (() holds anywhere); labels: those for zone and region;
    claim: (namespace, name) it is meant for or bound to; driver: its CSI driver, "" for other kinds; handle: what that driver calls
    it, the same for volumes that are one and the same to it."""

    name: str
    terms: tuple[NodeSelectorTerm, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    storage_class: str = ""
    capacity: int = 0
    access_modes: tuple[str, ...] = ()
    claim: tuple[str, str] | None = None
    driver: str = ""
    handle: str = ""


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """volume: the PersistentVolume it names, "" while it has none; bound: to that volume, both ways; lost: its volume is
    gone; storage_class: None when the field is absent (the default class), "" for none; requested: bytes; controller: UID of
    its controlling owner, the pod whose ephemeral volume it was made for, "" for none; selected_node: for which its volume is being
    made, "" for none."""

    namespace: str
    name: str
    volume: str = ""
    bound: bool = False
    lost: bool = False
    deleting: bool = False
    storage_class: str | None = None
    requested: int = 0
    access_modes: tuple[str, ...] = ()
    controller: str = ""
    selected_node: str = ""

    @property
    def is_for_one_pod(self) -> bool:
        """Whether one pod at most may use it at a time, wherever that runs."""
        return "ReadWriteOncePod" in self.access_modes

    def __str__(self) -> str:
        return f"PersistentVolumeClaim/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """waits: WaitForFirstConsumer, so that the pod's node decides where the volume is made; topologies: where it may be
    made, of which one must hold (() anywhere); default: for claims that name no class."""

    name: str
    provisioner: str = ""
    waits: bool = False
    topologies: tuple[NodeSelectorTerm, ...] = ()
    default: bool = False


@dataclass(frozen=True, slots=True)
class VolumeLimits:
    """What a node's CSINode says, by CSI driver. limits: how many of its volumes the node can have attached; topology: labels by which
    the driver tells from where a volume is reached, () for from everywhere."""

    node: str
    limits: tuple[tuple[str, int], ...] = ()
    topology: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """All of it, each by name."""

    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    classes: tuple[StorageClass, ...] = ()
    limits: tuple[VolumeLimits, ...] = ()
