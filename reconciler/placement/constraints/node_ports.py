"""Host ports: kube-scheduler's plugin NodePorts. Pods that want the same port of the same address cannot share a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from reconciler.model.placement import Cause
from reconciler.model.pods import HostPort
from reconciler.placement.arrays import Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints import Constraint
from reconciler.placement.phrases import listed

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
