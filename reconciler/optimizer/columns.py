"""Column generation: a linear master problem mixes known patterns, and pricing looks for patterns that would make it cheaper.

The master's dual prices say what one more chunk of each item type would cost. A pattern whose chunks are worth more than its
node costs lowers the master's price, so it becomes a column. See Gilmore and Gomory (1961) on the cutting-stock problem.

Greedy pricing fills nodes of all bin types, each in several orders. None of the patterns is sure to be the best, but each is sure to
fit. Exact pricing solves an integer program for each bin type. It takes many times as long and lowers the price by half a percent at
most. Its answer is sure, so that a bound can rest on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from reconciler.model.refs import by_key
from reconciler.optimizer.packing import Packing, Pattern
from reconciler.optimizer.solver import Floats, LinearProgram, WorkBudget
from reconciler.placement.arrays import Amounts
from reconciler.placement.loops.kernel import jit
from reconciler.placement.requirements import Mask

GreedyFill = Callable[[Amounts, Mask, Amounts, Amounts, Amounts, Mask], Amounts]


@lru_cache(maxsize=1)
def greedy_fill() -> GreedyFill:
    compiled = jit()
    return fill_in_order if compiled is None else compiled(fill_in_order)


def fill_in_order(  # noqa: C901 - compiled code is one loop over plain arrays
    order: Amounts, admitted: Mask, requests: Amounts, capacity: Amounts, most: Amounts, conflicts: Mask
) -> Amounts:
    """How many chunks of each item type each node takes, when it takes as many as it can of one type after another.

    order: nodes × item types, which type comes when. admitted: nodes × item types, used up. requests: item types ×
    resources. capacity: nodes × resources, used up. most: by item type, on one node. conflicts: item types × item types.
    Returns counts: nodes × item types.
    """
    filled = order * 0
    smallest = [requests[:, resource].min() for resource in range(requests.shape[1])]
    for node in range(order.shape[0]):
        for step in range(order.shape[1]):
            item = order[node, step]
            if not admitted[node, item]:
                continue
            fits = most[item]
            for resource in range(requests.shape[1]):
                request = requests[item, resource]
                if request > 0:
                    if capacity[node, resource] < request:
                        fits = 0
                        break
                    fits = min(fits, capacity[node, resource] // request)
            if fits <= 0:
                continue
            filled[node, item] = fits
            full = False
            for resource in range(requests.shape[1]):
                capacity[node, resource] -= fits * requests[item, resource]
                # What some type asks nothing of may be short all along.
                full |= smallest[resource] > 0 and capacity[node, resource] < smallest[resource]
            if full:
                break
            for other in range(conflicts.shape[0]):
                if conflicts[item, other]:
                    admitted[node, other] = False
    return filled


_GAIN = 1e-7
"""USD an hour that a column must save; less is rounding."""
_LONGEST_REST = 7
"""Most rounds for which a bin type is left out after it had no column."""
_STEPS = 6
"""Of a weight, from none to all of it: finer steps take longer and hardly find more."""


@dataclass(frozen=True, slots=True)
class MasterSolution:
    """price: USD an hour. amounts: nodes by pattern, with fractions. dual_prices: USD an hour of a chunk by item type. surcharges: USD an
    hour of a node by NodePool, beside its price, where their number is limited."""

    price: float
    amounts: Floats
    dual_prices: Floats
    surcharges: Floats


class Pricing:
    """Remembers which bin types had no column lately, so as to try the others first."""

    def __init__(self, packing: Packing) -> None:
        bin_types = packing.bin_types
        self._packing = packing
        self._bin_types = bin_types
        self._rest = np.zeros(len(bin_types), dtype=np.int64)
        self._wait = np.zeros(len(bin_types), dtype=np.int64)
        requests = packing.rules.sizes[:, : bin_types.capacity.shape[1]]
        used = np.flatnonzero(requests.any(axis=0))
        weights = np.array(list(_weights(len(used))), dtype=np.float64)
        shares = requests[None, :, used] / np.maximum(bin_types.capacity[:, used], 1)[:, None, :]
        self._burden: Floats = np.einsum("ow,skw->sok", weights, shares)
        """Bin types × weights × item types: the weighted part of a node that one chunk takes."""
        of_sets = by_key((admitted.tobytes(), number) for number, admitted in enumerate(bin_types.admits))
        self._alike = [(bin_types.admits[numbers[0]], np.array(numbers)) for numbers in of_sets.values()]
        """Bin types on which the same item types may be, with which these are."""

    def columns(self, solution: MasterSolution, left: Amounts, budget: WorkBudget) -> list[Pattern]:
        """At most one column for each bin type; none only where no bin type has any. left: by item type, chunks that want a node."""
        chosen = np.flatnonzero((solution.dual_prices > 0) & (left > 0))
        admitting = self._bin_types.admits[:, chosen].any(axis=1)
        now = admitting & (self._wait == 0)
        self._wait = np.maximum(self._wait - 1, 0)
        for asked in (now, admitting & ~now):
            found: list[Pattern] = []
            for admitted, alike in self._alike:
                bins = alike[asked[alike]]
                if len(bins):
                    found += self._best_of(bins, chosen[admitted[chosen]], solution, left, budget)
            if found:
                return found
        return []

    def _best_of(
        self, bins: Amounts, chosen: Amounts, solution: MasterSolution, left: Amounts, budget: WorkBudget
    ) -> list[Pattern]:
        dual_prices = solution.dual_prices
        costs = self._bin_types.prices[bins] / 1e9 + solution.surcharges[self._bin_types.pools[bins]]
        filled = self._filled(bins, chosen, dual_prices, left)
        budget.charge(cells=filled.size)
        value = filled @ dual_prices[chosen]
        best = value.argmax(axis=1)
        gains = value[np.arange(len(bins)), best] - costs > _GAIN
        self._rest[bins] = np.where(gains, 0, np.minimum(2 * self._rest[bins] + 1, _LONGEST_REST))
        self._wait[bins] = self._rest[bins]
        places = np.flatnonzero(gains).tolist()
        return [self._bin_types.filled(int(bins[place]), chosen, filled[place, best[place]]) for place in places]

    def _filled(self, bins: Amounts, chosen: Amounts, dual_prices: Floats, left: Amounts) -> Amounts:
        """Counts by bin type, weights and chosen item type: what is worth most for the part of the node that it takes first."""
        orders = self._burden.shape[1]
        burden = self._burden[np.ix_(bins, np.arange(orders), chosen)].reshape(-1, len(chosen))
        order = np.argsort(-dual_prices[chosen] / np.maximum(burden, 1e-12), axis=1, kind="stable")
        admitted = np.ones(order.shape, dtype=np.bool_)
        capacity = np.repeat(self._packing.room[bins], orders, axis=0)
        conflicts = self._packing.rules.conflicts[np.ix_(chosen, chosen)]
        most = np.where(conflicts.diagonal(), 1, left[chosen])
        filled = greedy_fill()(order, admitted, self._packing.rules.sizes[chosen], capacity, most, conflicts)
        return filled.reshape(len(bins), orders, len(chosen))


def _weights(resources: int) -> Iterable[Floats]:
    """What scarce may mean: all resources alike, mixes of the first three, and each of the others alone.

    The number of pods is the third. The more it weighs, the sooner large chunks come, and the small ones then fill the gaps.
    """
    yield np.full(resources, 1 / resources)
    mixed = min(resources, 3)
    for parts in product(range(_STEPS + 1), repeat=mixed):
        if sum(parts) == _STEPS:
            yield np.array([*parts, *[0] * (resources - mixed)]) / _STEPS
    yield from np.eye(resources)[mixed:]


_LEAST_PRICE = 1e-9
"""USD an hour that stands for none, where it is divided by."""
_LEAST_GAIN = 1e-7
"""Part of a node's price by which a column must save; less is rounding."""
_GAP = 0.001
"""Part of what chunks are worth that is left open; less takes up to four times as long."""


class Knapsacks:
    """A program for each bin type. What excludes only some of the others is left out, so that chunks are worth rather too much."""

    def __init__(self, packing: Packing) -> None:
        self._bin_types = packing.bin_types
        self._items = [np.flatnonzero(most) for most in packing.most_alone]
        self._programs = []
        for number, items in enumerate(self._items):
            shares = packing.shares(number)[items]
            program = LinearProgram(np.full(shares.shape[1], -1.0), presolve="on", mip_rel_gap=_GAP)
            program.add(np.zeros(len(items)), -shares, packing.most_alone[number, items].astype(np.float64))
            self._programs.append(program)

    def price(self, solution: MasterSolution, budget: WorkBudget, *, branches: int) -> tuple[float, list[Pattern]]:
        """How many times its price a node's chunks are worth at most, at least once; and patterns that are worth more than they cost.

        Bin types that are worth less than the best so far, even when chunks are split, are left out. branches: of each program.
        """
        dual_prices, surcharges = solution.dual_prices, solution.surcharges[self._bin_types.pools]
        prices = np.maximum(self._bin_types.prices / 1e9, _LEAST_PRICE)
        most = np.full(len(prices), np.inf)
        for number, (program, items) in enumerate(zip(self._programs, self._items, strict=True)):
            program.cost(-dual_prices[items])
            if program.solve(budget):
                most[number] = -(program.least_cost + surcharges[number]) / prices[number]
        ratio, found = 1.0, []
        for number in np.argsort(-most, kind="stable").tolist():
            if most[number] <= ratio:
                break
            program, items = self._programs[number], self._items[number]
            program.set(mip_max_nodes=branches)
            program.solve(budget, whole=len(items))
            ratio = max(ratio, min(float(most[number]), -(program.bound + surcharges[number]) / prices[number]))
            counts = np.rint(program.amounts).astype(np.int64)
            if counts @ dual_prices[items] > surcharges[number] + prices[number] * (1 + _LEAST_GAIN):
                found.append(self._bin_types.filled(number, items, counts))
        return ratio, found


@dataclass(frozen=True, slots=True)
class Rows:
    """What all nodes together must come to, and what helps and costs nothing.

    least: by row, at least so much. of_items: item types × rows, what one chunk adds. of_pools: NodePools × rows, what one node adds.
    free: variables × rows, what else adds to them. most: of each of these variables.
    """

    least: Floats
    of_items: Floats
    of_pools: Floats
    free: Floats
    most: Floats

    @classmethod
    def of_chunks(cls, packing: Packing) -> Rows:
        """A row for the chunks of each item type."""
        items, pools = len(packing.counts), int(packing.bin_types.pools.max(initial=-1)) + 1
        return cls(
            packing.counts.astype(np.float64),
            np.eye(items),
            np.zeros((pools, items)),
            np.zeros((0, items)),
            np.zeros(0),
        )


def held_by(patterns: Sequence[Pattern], item_types: int) -> Amounts:
    """Patterns × item types."""
    held = np.zeros((len(patterns), item_types), dtype=np.int64)
    for row, pattern in enumerate(patterns):
        for item, count in pattern.items:
            held[row, item] = count
    return held


_PROGRESS = 1e-5
"""Part of the price by which it must fall within `_PATIENCE` rounds for more rounds to be worth it."""
_PATIENCE = 20
_EXACT_ROUNDS = 30
_FEWEST_BRANCHES = 200
_MOST_BRANCHES = 3200
"""If pricing finds no column but has not proved that none exists, up to this many branches are tried."""
_CLOSED = 0.001
_ROUNDS = 3
"""Of greedy pricing after each exact one."""


class ColumnGeneration:
    """How many nodes of each pattern, fractions allowed, hold all chunks at the least price; and the pricing that finds more patterns.

    left: by item type, how many chunks are to be placed."""

    def __init__(
        self,
        packing: Packing,
        patterns: Iterable[Pattern],
        budget: WorkBudget,
        *,
        rows: Rows | None = None,
        pricing: Pricing | None = None,
    ) -> None:
        self.packing, self.left = packing, packing.counts
        self.budget = budget
        self.patterns: list[Pattern] = []
        self._known: set[Pattern] = set()
        self._rows = rows = rows or Rows.of_chunks(packing)
        self._pricing = pricing or Pricing(packing)
        self._program = LinearProgram(rows.least)
        self._program.add(np.zeros(len(rows.free)), rows.free, rows.most)
        self._add(patterns)

    def _add(self, patterns: Iterable[Pattern]) -> int:
        """Returns how many of the patterns were new."""
        new = [pattern for pattern in dict.fromkeys(patterns) if pattern not in self._known]
        pools = np.array([pattern.pool for pattern in new], dtype=np.int64)
        entries = held_by(new, len(self._rows.of_items)) @ self._rows.of_items + self._rows.of_pools[pools]
        self._program.add(np.array([pattern.price for pattern in new]), entries)
        self._known.update(new)
        self.patterns += new
        return len(new)

    def only(self, patterns: Sequence[Pattern], counts: Amounts) -> ColumnGeneration:
        """The same for a part of the chunks, with these patterns to begin with."""
        return ColumnGeneration(replace(self.packing, counts=counts), patterns, self.budget, pricing=self._pricing)

    def require(self, left: Amounts) -> None:
        """From here on, `left[i]` chunks of item type i are to be placed."""
        self.left = left
        self._program.require(left.astype(np.float64))

    def _mixed(self) -> MasterSolution | None:
        """The best mix of the patterns that are known; None when no optimum was found within the budget."""
        program = self._program
        if not program.solve(self.budget):
            return None
        amounts, duals = program.amounts[len(self._rows.free) :], program.dual_prices
        return MasterSolution(program.least_cost, amounts, self._rows.of_items @ duals, -self._rows.of_pools @ duals)

    def solve(self, *, rounds: int) -> MasterSolution | None:
        """Adds columns until pricing finds none, or rounds or budget are used up. None when nothing was solved at all."""
        found: MasterSolution | None = None
        prices: list[float] = []
        while True:
            solution = self._mixed()
            if solution is None:
                return found
            found = solution
            prices.append(solution.price)
            stalled = len(prices) > _PATIENCE and prices[-_PATIENCE - 1] - prices[-1] < _PROGRESS * prices[-1]
            if len(prices) > rounds or stalled or self.budget.exhausted:
                return found
            if not self._add(self._pricing.columns(solution, self.left, self.budget)):
                return found

    def solve_exactly(
        self, *, rounds: int, exact: int = _EXACT_ROUNDS, closed: float = 0.0
    ) -> Iterator[tuple[MasterSolution, float]]:
        """The same with exact pricing when greedy pricing is done, round by round, with a bound in USD an hour that each proves.

        It takes many times as long. No node's chunks are worth more than r times what it costs. So the dual prices divided by r pay
        for no node too much, and what all chunks cost by them is a bound (Farley, 1990). With all columns r is one. It ends when a bound
        is within `closed` of the price.
        """
        knapsacks, branches = Knapsacks(self.packing), _FEWEST_BRANCHES
        solution = self.solve(rounds=rounds)
        for _ in range(exact):
            if solution is None or self.budget.exhausted:
                return
            ratio, patterns = knapsacks.price(solution, self.budget, branches=branches)
            yield solution, solution.price / ratio
            if ratio <= 1 + closed:
                return
            if self._add(patterns):
                solution = self.solve(rounds=_ROUNDS)
            elif ratio > 1 + _CLOSED and branches < _MOST_BRANCHES:
                branches *= 4
            else:
                return
