"""Which shapes exclude each other from a node: by anti-affinity on the hostname, or by host ports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.placement.batches import Batch
from reconciler.placement.constraints.inter_pod_affinity import AntiAffinityRule
from reconciler.placement.constraints.node_ports import ports_clash
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask


def conflicts_between(state: State, batches: Sequence[Batch]) -> Mask:
    """Batches × batches, symmetric; on the diagonal those of which a node takes one chunk."""
    first_of: dict[tuple[int, bool], int] = {}
    classes = [
        first_of.setdefault((batch.needs.equivalence_class, batch.keeps_minimum), number)
        for number, batch in enumerate(batches)
    ]
    counted = {number: frozenset(state.topology.counts_of(batches[number].needs)) for number in first_of.values()}
    conflicts = np.zeros((len(batches), len(batches)), dtype=np.bool_)
    for number in first_of.values():
        for rule in state.constraints(batches[number]).on_hosts:
            if isinstance(rule, AntiAffinityRule):
                conflicts[number] |= np.array([rule.counter in counted[other] for other in classes], dtype=np.bool_)
    conflicts = conflicts[classes]
    for number, batch in enumerate(batches):
        ports = batch.needs.shape.host_ports
        if ports:
            conflicts[number] |= np.array([ports_clash(ports, other.needs.shape.host_ports) for other in batches])
    return np.asarray(conflicts | conflicts.T, dtype=np.bool_)
