"""Which host each existing bin is by the label kubernetes.io/hostname, as kube-scheduler reads it.

In nearly every cluster each node has a hostname of its own. Then a bin is its own host, and nothing below costs anything.

A node may lack the label, though, and two may share a value: virtual nodes, `--hostname-override`, a label that somebody set.
To rules between pods, nodes that share a hostname are one host, and a node without one is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.amounts import Amounts
from reconciler.placement.label_table import Cell, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Hostnames:
    """The hosts of bins.

    domains: by number of bin, that of the first bin with its hostname; None without a hostname.
    sharing: by number of bin, the numbers of all with its hostname, where there is more than one.
    missing: by bin, whether it has no hostname; None where all have one. sentences: what to tell the user about those.
    """

    domains: Sequence[int | None]
    sharing: Mapping[int, Amounts]
    missing: Mask | None
    sentences: tuple[str, ...] = ()

    @property
    def having(self) -> Mask | bool:
        """By bin, whether it has a hostname or will have one; True stands for all."""
        return True if self.missing is None else ~self.missing


def hostnames_of(rows: Sequence[Mapping[str, Cell]], nodes: int) -> Hostnames:
    """rows: the labels of bins. The first `nodes` are nodes; the NodeClaims after them will each get a hostname of their own."""
    names = [row.get(HOSTNAME_LABEL) for row in rows[:nodes]]
    if None not in names and len(set(names)) == nodes:
        return Hostnames(range(len(rows)), {}, None)
    first: dict[Cell, int] = {}
    members: dict[Cell, list[int]] = {}
    for number, name in enumerate(names):
        if name is not None:
            first.setdefault(name, number)
            members.setdefault(name, []).append(number)
    domains = [None if name is None else first[name] for name in names]
    sharing: dict[int, Amounts] = {}
    for alike in members.values():
        if len(alike) > 1:  # one array for all of them, since every node of a cluster may have the same name
            sharing |= dict.fromkeys(alike, np.array(alike, dtype=np.int64))
    domains += range(nodes, len(rows))
    if None not in names:
        return Hostnames(domains, sharing, None)
    missing = np.array([domain is None for domain in domains], dtype=np.bool_)
    return Hostnames(domains, sharing, missing, (_sentence(names.count(None)),))


def _sentence(count: int) -> str:
    without = "1 node is" if count == 1 else f"{count:,} nodes are"
    return (
        f"{without} without label {HOSTNAME_LABEL}: spread and affinity by it keep pods off, anti-affinity by it does not, as with "
        "kube-scheduler"
    )
