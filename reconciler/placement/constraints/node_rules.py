"""What one node decides alone, as kube-scheduler's plugins do: NodeAffinity and NodeName, TaintToleration, NodeUnschedulable, NodePorts.

**Labels**: node selectors, node affinity and node names on existing nodes. `offers/node_templates.py` judges the same for new nodes.
kube-scheduler scores nodes by the preferred terms that they match.

**Taints**: NoSchedule and NoExecute keep off pods without a toleration. Chunks with a taint of their own are placed only on nodes that have
it, as long as nodes may be made for them. kube-scheduler scores nodes by their PreferNoSchedule taints that a pod does not tolerate.

**Nodes that take no pods**: cordoned, being deleted, not ready, or about to be replaced, as Karpenter has it. One more rule is headroom's
own: chunks that must fit now stay off nodes that are still coming up.

**Host ports**: pods that want the same port of the same address cannot share a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from reconciler.model.placement import Cause
from reconciler.model.pods import HostPort, PreferredNodeTerm
from reconciler.model.requirements import Taint, Toleration
from reconciler.placement.arrays import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch, NodeTerm
from reconciler.placement.constraints import Constraint
from reconciler.placement.phrases import instead_words, listed, suggestion
from reconciler.placement.requirements import WELL_KNOWN, Cell, LabelTable, Mask, Requirements, Values

MATCHES_NOTHING = "its required node affinity has none but empty terms, and an empty term matches no node"
AFFINITY_WEIGHT = 2
"""The weight of the score in kube-scheduler's default profile."""
_MOST_LOOKED_AT = 200
"""The most nodes to search for the one with the fewest wrong labels."""


class NodeAffinity(Constraint):
    """names: of existing bins. table: their labels as columns."""

    named = Cause.NODE_LABELS

    def __init__(self, names: Sequence[str], table: LabelTable) -> None:
        self._names = names
        self._table = table
        self._masks: dict[tuple[NodeTerm, ...], Mask] = {}
        self.alone = False
        """Whether no new node can be made, so that a label that resembles another may be a typing error worth a hint."""

    def meeting(self, terms: tuple[NodeTerm, ...]) -> Mask:
        """The bins that one of these terms matches. Taints and room are not judged here."""
        mask = self._masks.get(terms)
        if mask is None:
            mask = np.zeros(len(self._names), dtype=np.bool_)
            for term in terms:
                fits = self._table.matching(term.literal)
                for _, values in term.names.entries:
                    fits = fits & np.array([values.allows(name) for name in self._names], dtype=np.bool_)
                mask |= fits
            self._masks[terms] = mask
        return mask

    def liked(self, preferred: Sequence[PreferredNodeTerm]) -> Amounts:
        """By bin, the weights of the preferred terms that it matches, added up. A term that asks for nothing matches nothing."""
        weights = np.zeros(len(self._names), dtype=np.int64)
        for item in preferred:
            if item.term.expressions or item.term.fields:
                literal = Requirements.of(item.term.expressions, stable=False)
                names = Requirements.of(item.term.fields, stable=False)
                weights += item.weight * self.meeting((NodeTerm(literal, literal, names),))
        return weights

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        return np.where(self.meeting(batch.needs.terms)[bins], PLENTY, 0)

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        """What is wrong with the node that has the fewest wrong labels."""
        if not batch.needs.terms:
            return MATCHES_NOTHING
        judged = [(number, term) for number in bins[:_MOST_LOOKED_AT] for term in batch.needs.terms]
        misses = [self._wrong_labels(number, term) for number, term in judged]
        fewest = min(misses, key=len)
        number, term = judged[misses.index(fewest)]
        labels = self._table.row(number)
        missing = [key for key, _ in term.literal.entries if labels.get(key) is None]
        near = suggestion(missing[0], self._table.keys | WELL_KNOWN) if missing and self.alone else ""
        return f"{self._names[number]} {listed(fewest)}{near}"

    def _wrong_labels(self, number: int, term: NodeTerm) -> list[str]:
        labels = self._table.row(number)
        wrong = [words for key, values in term.literal.entries if (words := _wrong_label(key, labels.get(key), values))]
        found = [f"has {words}" if index == 0 else words for index, words in enumerate(wrong)]
        if not all(values.allows(self._names[number]) for _, values in term.names.entries):
            found.append("is not the node that is asked for by name")
        return found


def _wrong_label(key: str, cell: Cell, values: Values) -> str:
    """What is wrong with the label; "" where nothing is."""
    possible = cell if isinstance(cell, tuple) else (cell,)
    if all(values.allows(value) for value in possible):
        return ""
    if cell is None:
        return f"no label {key}"
    return f"{key}={' or '.join(map(str, possible))}, {instead_words(values)}"


# The loop below is compiled with the scheduler's walk (see placement/scheduler).


def score_node_affinity(totals: Numbers, able: Numbers, liked: Amounts) -> None:
    """Adds the plugin's score to the totals of able nodes: 100 where the preferred terms that match weigh most."""
    most = 0
    for index in range(len(able)):
        most = max(most, liked[able[index]])
    if most > 0:
        for index in range(len(able)):
            totals[able[index]] += AFFINITY_WEIGHT * (100 * liked[able[index]] // most)


TAINTS_WEIGHT = 3
"""The weight of the score in kube-scheduler's default profile."""
_BLOCKING = frozenset({"NoSchedule", "NoExecute"})


def tolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration], *, soft_taints: bool = True) -> bool:
    """Whether every taint that keeps pods off is tolerated. With soft_taints False, PreferNoSchedule keeps them off too."""
    return all(
        any(toleration.tolerates(taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _BLOCKING or not soft_taints
    )


def taint_words(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> str:
    """`has taint dedicated=batch:NoSchedule, which is not tolerated`, and what a toleration of the same key is for."""
    names = listed(f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in taints)
    words = f"taint {names}, which is" if len(taints) == 1 else f"taints {names}, which are"
    near = next((item for taint in taints for item in tolerations if item.key == taint.key), None)
    return f"has {words} not tolerated{'' if near is None else f': {_toleration_words(near)}'}"


def _toleration_words(toleration: Toleration) -> str:
    value = "" if toleration.operator == "Exists" else f" is for {toleration.key}={toleration.value}"
    effect = f" {'and' if value else 'is for'} {toleration.effect}" if toleration.effect else ""
    return f"its toleration{value}{effect}"


class TaintToleration(Constraint):
    """names, taints: those of existing bins."""

    named = Cause.NODE_TAINTS

    def __init__(self, names: Sequence[str], taints: Sequence[tuple[Taint, ...]]) -> None:
        self._names = names
        self._taints = taints
        self._with_taint: dict[Taint, Mask] = {}
        self._masks: dict[tuple[Toleration, ...], Mask] = {}

    def tolerating(self, tolerations: tuple[Toleration, ...]) -> Mask:
        """Bins all of whose taints are tolerated."""
        mask = self._masks.get(tolerations)
        if mask is None:
            judged = {taints: tolerated(taints, tolerations) for taints in set(self._taints)}
            mask = self._masks[tolerations] = np.array([judged[taints] for taints in self._taints], dtype=np.bool_)
        return mask

    def avoided(self, tolerations: tuple[Toleration, ...]) -> Amounts:
        """By bin, how many PreferNoSchedule taints are not tolerated."""
        soft = {
            taints: sum(
                taint.effect == "PreferNoSchedule" and not tolerated((taint,), tolerations, soft_taints=False)
                for taint in taints
            )
            for taints in set(self._taints)
        }
        return np.array([soft[taints] for taints in self._taints], dtype=np.int64)

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        shape = batch.needs.shape
        able = self.tolerating(shape.tolerations)[bins]
        if shape.own_taint is not None:
            able = able & self._having(shape.own_taint)[bins]
        return np.where(able, PLENTY, 0)

    def _having(self, taint: Taint) -> Mask:
        mask = self._with_taint.get(taint)
        if mask is None:
            found = [taint in taints for taints in self._taints]
            mask = self._with_taint[taint] = np.array(found, dtype=np.bool_)
        return mask

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        """Names the node with the fewest taints that are in the way."""
        tolerations = batch.needs.shape.tolerations
        tolerating = [number for number in bins if tolerated(self._taints[number], tolerations)]
        if tolerating:
            return f"{self._names[tolerating[0]]} was not made for it alone"
        missed = {
            self._names[number]: [taint for taint in self._taints[number] if not tolerated((taint,), tolerations)]
            for number in bins
        }
        name = min(missed, key=lambda item: len(missed[item]))
        return f"{name} {taint_words(missed[name], tolerations)}"


# The loop below is compiled with the scheduler's walk (see placement/scheduler).


def score_taints(totals: Numbers, able: Numbers, avoided: Amounts) -> None:
    """Adds the plugin's score to the totals of able nodes: 100 where no taint is in the way, 0 where most are."""
    most = 0
    for index in range(len(able)):
        most = max(most, avoided[able[index]])
    for index in range(len(able)):
        totals[able[index]] += TAINTS_WEIGHT * (100 if most == 0 else 100 - 100 * avoided[able[index]] // most)


class NodeUnschedulable(Constraint):
    """names: of existing bins. unavailable: why each takes no pods; "" where it does."""

    named = Cause.NODE_NOT_AVAILABLE

    def __init__(self, names: Sequence[str], unavailable: Sequence[str]) -> None:
        self._names = names
        self._unavailable = unavailable
        self._most: Amounts = np.array([0 if why else PLENTY for why in unavailable], dtype=np.int64)

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        del batch
        return self._most[bins]

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        """Each reason with the first node it holds for: `node-1 is cordoned, node-2 and 3 others are not ready`."""
        del batch
        counts = Counter(self._unavailable[number] for number in bins)
        first = {self._unavailable[number]: self._names[number] for number in reversed(bins)}
        return listed(_those(first[why], count - 1, why) for why, count in counts.most_common())


def _those(name: str, others: int, why: str) -> str:
    if not others:
        return f"{name} {why}"
    plural = f"are{why.removeprefix('is')}" if why.startswith("is ") else why
    return f"{name} and {others:,} other{'s' if others > 1 else ''} {plural}"


class NodeReadiness(NodeUnschedulable):
    """names: of existing bins; arriving: whether each is not up yet."""

    named = Cause.NODE_ON_ITS_WAY

    def __init__(self, names: Sequence[str], arriving: Sequence[bool]) -> None:
        super().__init__(names, ["is not ready yet" if late else "" for late in arriving])

    def concerns(self, batch: Batch) -> bool:
        return batch.only_ready


_UNSPECIFIED = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - how Kubernetes writes "every address", nothing is bound


def ports_clash(wanted: Sequence[HostPort], used: Sequence[HostPort]) -> bool:
    """Whether both have a port in common: the same protocol and number, on the same address, or where either takes every address."""
    return any(
        one.port == other.port
        and one.protocol == other.protocol
        and (one.address == other.address or one.address in _UNSPECIFIED or other.address in _UNSPECIFIED)
        for one in wanted
        for other in used
    )


def ports_words(ports: Iterable[HostPort]) -> str:
    """`53/UDP and 53/TCP`."""
    return listed(f"{port.port}/{port.protocol}" for port in ports)


def taken_on_each_node(batch: Batch, used: Sequence[HostPort]) -> str:
    """Why no new node takes a chunk; "" where daemons leave its ports free. used: by daemon pods on every node of a NodePool."""
    taken = [port for port in batch.needs.shape.host_ports if ports_clash((port,), used)]
    return f"a daemon set uses host port {ports_words(taken)} on each node" if taken else ""


class NodePorts(Constraint):
    """names: of existing bins. used: the ports in use, by bin number."""

    named = Cause.PORT_TAKEN

    def __init__(self, names: Sequence[str], used: Mapping[int, tuple[HostPort, ...]]) -> None:
        self._names = names
        self._used = dict(used)

    def used(self, number: int) -> tuple[HostPort, ...]:
        return self._used.get(number, ())

    def concerns(self, batch: Batch) -> bool:
        return bool(batch.needs.shape.host_ports)

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        """One at most, since equal chunks want equal ports."""
        wanted = batch.needs.shape.host_ports
        return np.array([not ports_clash(wanted, self.used(number)) for number in bins.tolist()], dtype=np.int64)

    def open(self, number: int, ports: tuple[HostPort, ...]) -> None:
        """Adds a planned node under this bin number, with the ports that its daemons will use."""
        if ports or number in self._used:
            self._used[number] = ports

    def reserve(self, batch: Batch, number: int, count: int) -> None:
        """Reserves a chunk's ports on the bin. A count below 0 takes back those that came last."""
        used, ports = self.used(number), batch.needs.shape.host_ports
        self._used[number] = (*used, *ports) if count > 0 else used[: -len(ports)]

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        first = bins[0]
        taken = [port for port in batch.needs.shape.host_ports if ports_clash((port,), self.used(first))]
        return f"{self._names[first]} has host port {ports_words(taken)} in use"
