"""What pods have in common by their volume claims, worked out before anything is placed. Used by attachments.

As kube-scheduler judges it. A node attaches a volume once, however many of its pods use it (NodeVolumeLimits). A claim that waits
for its first consumer gets its volume where that pod goes, and the others must reach it there (VolumeBinding). A claim that
is ReadWriteOncePod is had by one pod in the cluster (VolumeRestrictions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.nodes import HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL, InstanceType, NodePool
from reconciler.model.pods import PodShape, Sharing
from reconciler.model.view import ClusterView
from reconciler.placement.constraints.volume_limits import ATTACHABLE
from reconciler.placement.constraints.volumes import Volumes
from reconciler.placement.requirements import STABLE_KEYS

_Claim = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class InUse:
    """What running pods have of that which is shared (see `Sharing`). volumes: by node; claims: those for one pod, in words."""

    volumes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    claims: frozenset[str] = frozenset()


NOT_IN_USE = InUse()


class SharedClaims:
    """users: shapes that some node may take, each with how many chunks have it; limited: drivers whose volumes some node limits;
    defined: labels that new nodes are known to have. assumptions: what was not known."""

    def __init__(
        self,
        view: ClusterView,
        volumes: Volumes,
        users: Sequence[tuple[PodShape, int]],
        *,
        limited: Collection[str],
        defined: Collection[str],
    ) -> None:
        self._nodes = view.nodes
        self._volumes = volumes
        self._limited = limited
        self._defined = defined
        self._users: Counter[_Claim] = Counter()
        for shape, count in users:
            for claim in claims_of(shape):
                self._users[claim] += count
        self._taken: set[str] = set()
        self.attached: dict[str, dict[str, str]] = {}
        """By node the volumes that pods there use, each with its driver."""
        counted: Counter[str] = Counter()
        for pod in view.pods:
            if pod.node_name is not None and pod.shape.volume_claims:
                self._run(pod.node_name, pod.shape, counted)
        for item, count in self._users.items():
            counted[volumes.volume(*item)] += count
        self._shared = {volumes.volume(*item) for item in self._users if counted[volumes.volume(*item)] > 1}
        self._company = dict(self._companies())
        self.assumptions = tuple(
            f"{claim} has no volume yet, and no CSINode tells from where that will be reached: its pods are placed in one zone"
            for claim in sorted(volumes.unknown)
        )

    def _run(self, node: str, shape: PodShape, counted: Counter[str]) -> None:
        there = self.attached.setdefault(node, {})
        for item in claims_of(shape):
            claim, volume = self._volumes.claim(*item), self._volumes.volume(*item)
            there[volume] = self._volumes.driver(*item)
            counted[volume] = 1
            if claim is not None and claim.is_for_one_pod:
                self._taken.add(str(claim))

    def in_use(self) -> InUse:
        """Of volumes those that pods to be placed use too."""
        there = (
            {name: self._shared.intersection(found) for name, found in self.attached.items()} if self._shared else {}
        )
        return InUse({name: frozenset(found) for name, found in there.items() if found}, frozenset(self._taken))

    def shape(self, shape: PodShape) -> PodShape:
        """With what it shares, and the mark by which those are known with whom it waits for a volume; itself where that is nothing."""
        volumes, affinity, sole = dict[str, str](), dict[tuple[str, str], None](), list[str]()
        for item in claims_of(shape):
            claim = self._volumes.claim(*item)
            driver, volume = self._volumes.driver(*item), self._volumes.volume(*item)
            if driver in self._limited and volume in self._shared:
                volumes[volume] = ATTACHABLE + driver
            affinity |= dict.fromkeys(self._company.get(item, ()))
            if claim is not None and claim.is_for_one_pod and (self._users[item] > 1 or str(claim) in self._taken):
                sole.append(str(claim))
        if not (volumes or affinity or sole):
            return shape
        marks = {mark: "" for _, mark in affinity}
        return replace(
            shape,
            labels=tuple(sorted({**dict(shape.labels), **marks}.items())),
            sharing=Sharing(tuple(sorted(volumes.items())), tuple(affinity), tuple(sole)),
        )

    def _companies(self) -> Iterable[tuple[_Claim, tuple[tuple[str, str], ...]]]:
        """Claims that wait for a volume and have several users, each with the labels that these must have in common and their mark."""
        for claim, users in sorted(self._users.items()):
            observed = {self._observed(key) for key in self._volumes.deciding_labels(*claim)} if users > 1 else set()
            if ZONE_LABEL in observed:
                observed.discard(REGION_LABEL)  # zones lie within regions
            yield claim, tuple((key, str(self._volumes.claim(*claim))) for key in sorted(observed))

    def _observed(self, key: str) -> str:
        """The label to go by: one by which no node that is there is like another, and that no new node is known to have, names the
        node."""
        key = STABLE_KEYS.get(key, key)
        if key in self._defined:
            return key
        values = Counter(value for node in self._nodes if (value := node.label(key)) is not None)
        return key if max(values.values(), default=0) > 1 else HOSTNAME_LABEL


def claims_of(shape: PodShape) -> list[_Claim]:
    return [(shape.namespace, name) for name in shape.volume_claims]


def defined_labels(node_pools: Iterable[NodePool], instance_types: Iterable[InstanceType]) -> frozenset[str]:
    """Labels that some new node is sure to have, or has one of some values of."""
    found = {ZONE_LABEL, HOSTNAME_LABEL}
    for pool in node_pools:
        found |= {key for key, _ in pool.template.labels} | {item.key for item in pool.template.requirements}
    for kind in instance_types:
        found |= {key for key, _ in kind.labels}
        found |= {item.key for offering in kind.offerings for item in offering.requirements}
    return frozenset(STABLE_KEYS.get(key, key) for key in found)
