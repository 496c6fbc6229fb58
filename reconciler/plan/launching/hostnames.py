"""Findings about nodes that share a hostname.

Rules between pods by kubernetes.io/hostname go by that label, not by the node. To kube-scheduler two nodes with one value are one.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.findings import Finding
from reconciler.model.nodes import HOSTNAME_LABEL, Node
from reconciler.model.refs import ObjectRef, abridged
from reconciler.plan.codes import SHARED_HOSTNAME

_MOST_NAMES = 5


def hostname_findings(nodes: Sequence[Node]) -> tuple[Finding, ...]:
    """One for each hostname that several nodes carry."""
    hostnames = [value for node in nodes for key, value in node.labels if key == HOSTNAME_LABEL]
    if len(set(hostnames)) == len(hostnames):
        return ()
    members: dict[str, list[str]] = {}
    for node in nodes:
        hostname = node.label(HOSTNAME_LABEL)
        if hostname is not None:
            members.setdefault(hostname, []).append(node.name)
    return tuple(_finding(hostname, sorted(names)) for hostname, names in sorted(members.items()) if len(names) > 1)


def _finding(hostname: str, names: Sequence[str]) -> Finding:
    return Finding(
        SHARED_HOSTNAME.name,
        SHARED_HOSTNAME.severity,
        f"{len(names):,} nodes carry {HOSTNAME_LABEL}={hostname} ({abridged(names, _MOST_NAMES)}): spread, affinity and anti-affinity by it take them for one",
        ref=ObjectRef("", "Node", "", names[0]),
        hint="give each machine a host name of its own, and delete nodes whose machine is no more",
    )
