"""The arrays of placement: resource lists as rows of integers, with a column for each resource that any chunk asks for; and what the rows of
the arrays are that the loops work on.

Units are those of `Resources`: thousandths of CPU, bytes of memory, whole numbers of everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reconciler.model.quantity import CPU, MEMORY, PODS, Resources

Amounts: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int64]
"""Numbers of bins, types, rows or positions: indices into other arrays."""
LARGEST = 2**52
"""Amounts are capped here (4 PiB of memory), so that sums of thousands of them stay exact in 64 bits."""
PLENTY = 2**62
"""Stands for "no limit" among counts, and for "not available" among prices."""


class ResourceColumns:
    """The resources that have a column: CPU, memory and pods, then all others by name."""

    def __init__(self, asked: Iterable[Resources]) -> None:
        names = {name for resources in asked for name, _ in resources.amounts} - {CPU, MEMORY, PODS}
        self.names = (CPU, MEMORY, PODS, *sorted(names))
        self._vectors: dict[tuple[tuple[str, int], ...], Amounts] = {}
        self._requests: dict[tuple[tuple[str, int], ...], Amounts] = {}
        """Cache by the amounts of resource lists, which hash faster than the lists themselves."""
        self._by_name = sorted(enumerate(self.names), key=itemgetter(1))

    def vector(self, resources: Resources) -> Amounts:
        """The amounts, shape (resources,). The array is shared and must not be modified."""
        vector = self._vectors.get(resources.amounts)
        if vector is None:
            amounts = dict(resources.amounts)
            cut = [max(-LARGEST, min(LARGEST, amounts.get(name, 0))) for name in self.names]
            vector = self._vectors[resources.amounts] = np.array(cut, dtype=np.int64)
        return vector

    def request(self, resources: Resources) -> Amounts:
        """The same as `vector`, but a request of LARGEST or more fits nowhere."""
        request = self._requests.get(resources.amounts)
        if request is None:
            vector = self.vector(resources)
            request = self._requests[resources.amounts] = np.where(vector >= LARGEST, PLENTY // 2, vector)
        return request

    def matrix(self, lists: Iterable[Resources]) -> Amounts:
        """The amounts of several lists, shape (lists, resources)."""
        rows = [self.vector(resources) for resources in lists]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.names))

    def asked(self, amounts: Sequence[int]) -> Resources:
        """The amounts as a resource list."""
        return Resources(tuple([(name, amounts[column]) for column, name in self._by_name if amounts[column]]))


def times(room: Amounts, request: Amounts) -> Amounts:
    """How many times `request` fits into each row of `room`; shape (rows, resources) → (rows,), never below 0."""
    asked = request > 0
    if not asked.any():
        return np.full(room.shape[:-1], PLENTY, dtype=np.int64)
    return np.asarray(np.maximum((room[..., asked] // request[asked]).min(axis=-1), 0), dtype=np.int64)


SPREAD_ITSELF, SPREAD_OTHERS, ANTI_AFFINITY_ITSELF, ANTI_AFFINITY_OTHERS, AFFINITY = range(5)
"""Codes of rules between pods."""
CODE, COUNTER, KEY, SKEW, MIN_DOMAINS, APART, ITSELF, BOUND = range(8)
"""Columns of rules between pods. COUNTER: its row of `counts`, or of `hosts`. KEY: number of its label, -1 for the hostname. SKEW: maxSkew, 0
for rules that do not go by the minimum. BOUND: of rules on the hostname, the most pods that may count on a host."""
EMPTY, MINIMUM, RUNNING, USED, LEAN = range(5)
"""Parts of `loads`: what KeepEmpty chunks, KeepMinimum chunks and pending pods take; all of it; all of it without pods."""
TEMPLATE, POSITION, TYPE, ROW, PRICE = range(5)
"""Rows of `marks`. TEMPLATE: number of the node template. POSITION: which of its types the node would be bought as. TYPE, ROW: that type
and its cheapest row of the catalog, both numbered through all NodePools. PRICE: of that row, in billionths of a USD an hour."""
START, END, POOL = range(3)
"""Rows of `spans`: where the types of a node template begin and end in the line, and its NodePool."""
TYPES, TYPE_ROWS, TYPE_PRICES, LEAST_NET = range(4)
"""Rows of `line`: the types of all node templates, the cheapest row of each, its price, and the least net price from this type on."""
ABLE, FITS, NODES, COUNTS = range(4)
"""Rows of `found`. ABLE, FITS: nodes that can take chunks, and how many each. NODES, COUNTS: which were chosen, and how many chunks for each."""
BATCH, BIN, CHUNKS, NOW, WAS, AT = range(6)
"""Columns of the journal of what was placed. BATCH: its index in `State.batches`. BIN: existing bins are numbered first, planned nodes after
them. CHUNKS: 0 where a planned node only got another type. NOW: the number of the template that a planned node has from then on; -1 of an
existing bin. WAS, AT: the template that it had before (-1: it did not exist), and which of its types."""
MOST_WORTH = 0.8
"""The room of a node counts as worth at most this part of its price."""
KEPT = -1
"""In place of a type: the one that the node has; of a new node the cheapest that holds its chunks."""
ROUNDING = 1e-9
"""Prices per chunk are fractions. Two that differ by less than this count as equal."""

Flags: TypeAlias = NDArray[np.bool_]
Fractions: TypeAlias = NDArray[np.float64]
Table: TypeAlias = Any
"""An array, or lists in Python."""

NodeArrays: TypeAlias = tuple[Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Fractions, Fractions, Fractions]
"""found, marks, loads, spans, line, room, worth, discounts, least. found: rows × planned nodes, to write to. marks: rows × planned nodes, what
each node is. loads: parts × planned nodes × resources, what is on each. spans: rows × node templates. line: rows × types of all templates.
room: types × resources. worth: by resource, what a unit of free room is worth. discounts: by type, what its room takes off its price where
a node is made or made larger. Both are in billionths of a USD an hour. least: by planned node, a lower bound on the price per chunk if the
node is made larger, while chunks of one batch are placed."""
ChunkArrays: TypeAlias = tuple[Numbers, int, int]
"""request, part, counted: what a chunk asks for, the part of `loads` as which it counts, and the part that counts against its room."""
HostArrays: TypeAlias = tuple[Numbers, int, Numbers, Numbers]
"""hosts, base, rules, more. hosts: counters × bins, how many pods count on each host. base: the bin of the first planned node. rules: those on
the hostname. more: by planned node, further caps on its chunks; empty where there are none."""
LimitArrays: TypeAlias = tuple[Numbers, Numbers, Numbers]
"""capacities, spare, charged. capacities: types × limited resources. spare: NodePools × limited resources, what is left. charged: planned
nodes × limited resources, what each counts for; empty where that is its type's capacity."""
CounterArrays: TypeAlias = tuple[Numbers, Numbers, Numbers, Flags, Numbers, Numbers]
"""key, width, columns, present, counts, totals: of kube-scheduler's model. By counter: the row of its key in the domains, and how many
domains there are. columns: counters × nodes, the domain in which pods there count; -1 where they do not. present, counts: counters ×
domains, whether a node that counts is there, and how many pods. totals: by counter, how many pods in all."""
RuleArrays: TypeAlias = tuple[Numbers, Numbers, Numbers, Numbers, Numbers, Numbers]
"""kinds, options, rules, counted, requests, times: of the walk (see `loops/walk.py` for their columns). times: to write to."""
WayArrays: TypeAlias = tuple[Numbers, Numbers, Flags, Flags]
"""options, joins, bought, grows: which planned nodes chunks may join. options: the compatibilities of their domains, in the order in which
these are preferred. joins: compatibilities × templates, the template of a node once it has such chunks, -1 where they are not allowed.
bought: compatibilities × rows of the catalog, whether a node bought so may take them. grows: by template, whether nodes of it may be made
larger."""
OfferArrays: TypeAlias = tuple[Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers]
"""types, pool_of, prices, costs, empty, size_of, sizes, mixes, begins, largest: what new nodes may be. types, pool_of: the instance types
of the heaviest pools, and the pool of each. prices, costs: compatibilities × types. empty: compatibilities × pools, the template of a new
node, -1 where Python has not made it yet. size_of: requests × compatibilities, the row of `sizes`, `mixes` and `begins`. begins:
where the useful types begin. largest: by pool, the most of each limited resource that a node of it may take."""
TopologyArrays: TypeAlias = tuple[Numbers, Numbers, Numbers, Flags]
"""counts, planned, domain_of, seen. counts: counters on labels × domains. planned: by template, how many planned nodes have it. domain_of:
counters × templates, where chunks on its nodes count; -1 for nowhere. seen: of spread alone, see `State.see`."""
AccountArrays: TypeAlias = tuple[TopologyArrays, Numbers, Numbers, int, LimitArrays, Numbers, Numbers]
"""topology, counted, hosts, base, limits, log, at: where the walk writes what came where. counted: rows of those of this batch."""
