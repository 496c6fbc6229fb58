"""What pods attach: volumes with their claims and classes."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.pods import NodeSelectorTerm

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""A StorageClass with this provisioner provisions nothing: its claims wait for volumes created in advance."""


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A PersistentVolume."""

    name: str
    terms: tuple[NodeSelectorTerm, ...] = ()
    """Its required node affinity: one term must hold; () allows every node."""
    labels: tuple[tuple[str, str], ...] = ()
    """Only its labels for zone and region."""
    storage_class: str = ""
    capacity: int = 0
    """Bytes."""
    access_modes: tuple[str, ...] = ()
    claim: tuple[str, str] | None = None
    """Namespace and name of the claim that it is reserved for or bound to."""
    driver: str = ""
    """Its CSI driver; "" for other kinds of volume."""
    handle: str = ""
    """The driver's own id. Volumes with the same handle are the same volume to the driver."""


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim."""

    namespace: str
    name: str
    volume: str = ""
    """The name of its PersistentVolume; "" while it has none."""
    bound: bool = False
    """Whether claim and volume refer to each other."""
    lost: bool = False
    """Whether its volume has been deleted."""
    deleting: bool = False
    storage_class: str | None = None
    """None: the field is absent, so the default class counts; "": no class."""
    requested: int = 0
    """Bytes."""
    access_modes: tuple[str, ...] = ()
    controller: str = ""
    """UID of the pod whose ephemeral volume it was made for; "" for none."""
    selected_node: str = ""
    """The node for which its volume is being provisioned; "" for none."""

    @property
    def is_for_one_pod(self) -> bool:
        """Whether at most one pod may use it at a time (ReadWriteOncePod)."""
        return "ReadWriteOncePod" in self.access_modes

    def __str__(self) -> str:
        return f"PersistentVolumeClaim/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass."""

    name: str
    provisioner: str = ""
    waits: bool = False
    """WaitForFirstConsumer: the pod's node decides where the volume is provisioned."""
    topologies: tuple[NodeSelectorTerm, ...] = ()
    """Where volumes may be provisioned: one term must hold; () allows every node."""
    default: bool = False
    """Whether it is the default class, for claims that name none."""


@dataclass(frozen=True, slots=True)
class VolumeLimits:
    """The content of a node's CSINode. limits: by CSI driver, how many of its volumes can be attached."""

    node: str
    limits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """Everything about volumes in the cluster; each tuple is sorted by name."""

    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    classes: tuple[StorageClass, ...] = ()
    limits: tuple[VolumeLimits, ...] = ()
