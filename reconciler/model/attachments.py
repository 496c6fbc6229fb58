"""What pods attach: volumes with their claims and classes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from reconciler.model.pods import NodeSelectorTerm, PodShape

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""A StorageClass with this provisioner provisions nothing: its claims wait for volumes created in advance."""


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A PersistentVolume. terms: its required node affinity: one must hold; () allows every node."""

    name: str
    terms: tuple[NodeSelectorTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim.

    volume: the name of its PersistentVolume; "" while it has none. bound: whether claim and volume refer to each other. storage_class: None
    if the field is absent, so that the default class counts; "" for no class. selected_node: the node for which its volume is being
    provisioned; "" for none.
    """

    namespace: str
    name: str
    volume: str = ""
    bound: bool = False
    storage_class: str | None = None
    selected_node: str = ""

    def __str__(self) -> str:
        return f"PersistentVolumeClaim/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass.

    waits: WaitForFirstConsumer: the pod's node decides where the volume is provisioned. topologies: where that may be: one term must hold; ()
    allows every node. default: whether it is the default class, for claims that name none.
    """

    name: str
    provisioner: str = ""
    waits: bool = False
    topologies: tuple[NodeSelectorTerm, ...] = ()
    default: bool = False


@dataclass(frozen=True, slots=True)
class Storage:
    """Everything about volumes in the cluster; each tuple is sorted by name."""

    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    classes: tuple[StorageClass, ...] = ()
    _bound: frozenset[tuple[str, str]] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def bound(self) -> frozenset[tuple[str, str]]:
        """Namespace and name of each claim that has a volume. Computed once, since many buffers ask."""
        if self._bound is None:
            volumes = {volume.name for volume in self.volumes}
            bound = ((item.namespace, item.name) for item in self.claims if item.bound and item.volume in volumes)
            object.__setattr__(self, "_bound", frozenset(bound))
        assert self._bound is not None
        return self._bound

    def keep_bound(self, shape: PodShape) -> PodShape:
        """The shape of a virtual pod with no claims but those that have a volume, which say where it can be.

        A claim without one may never exist for it, and a buffer that waited for that would stay empty forever."""
        if not shape.volume_claims:
            return shape
        kept = tuple(name for name in shape.volume_claims if (shape.namespace, name) in self.bound)
        return replace(shape, volume_claims=kept)
