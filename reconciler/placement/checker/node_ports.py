"""Host ports (kube-scheduler's plugin NodePorts; the rule of addresses is HostPortInfo.CheckConflict in its framework)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from reconciler.model.pods import HostPort
from reconciler.placement.checker.checked_node import CheckedNode, Occupant


def port_violations(node: CheckedNode) -> Iterable[str]:
    clashes = clashing_ports(node.occupants)
    if clashes:
        yield f"{node.name}: host ports {sorted(set(clashes))} clash"


def clashing_ports(occupants: Sequence[Occupant]) -> list[int]:
    """Host ports that both a chunk and another pod of the node want."""
    asking = [item for item in occupants if item.shape.host_ports]
    clashes = [port.port for item in asking if item.count > 1 for port in item.shape.host_ports]
    for one, other in combinations(asking, 2):
        if one.is_chunk or other.is_chunk:
            taken = other.shape.host_ports
            clashes += [port.port for port in one.shape.host_ports if any(_clash(port, wanted) for wanted in taken)]
    return clashes


def _clash(port: HostPort, other: HostPort) -> bool:
    everywhere = {port.address, other.address} & {"", "0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    same = (port.port, port.protocol) == (other.port, other.protocol)
    return same and (bool(everywhere) or port.address == other.address)
