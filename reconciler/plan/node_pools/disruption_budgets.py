"""How many nodes of a pool may be disrupted at once, and why, by Karpenter's rules (its design "Disruption Controls By Reason").

The rules are those of Karpenter 1.14 (`GetAllowedDisruptionsByReason`, `BuildDisruptionBudgetMapping`):

- A reason's budget is the least of the open budgets that name it or name none; none open: unbounded.
- Every disrupting or not-ready node is taken off every reason's budget, each node once, and never below 0.
- One budget that cannot be evaluated closes the pool for every reason; a `nodes` that cannot be read only while it is open.
- Percentages round up. Node repair (Unhealthy) asks no budget in 1.14; a budget that names it is shown all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

from reconciler.model.changes import BudgetOutcome
from reconciler.model.errors import Invalid
from reconciler.model.nodes import INITIALIZED_LABEL, REASONS, DisruptionBudget, NodePool
from reconciler.model.quantity import format_duration, whole_number
from reconciler.model.refs import counted
from reconciler.model.timelines import UNBOUNDED
from reconciler.plan.bins import Bin
from reconciler.timetable.cron import parse_cron
from reconciler.timetable.windows import is_open

UNDERUTILIZED, EMPTY, DRIFTED = REASONS
_DEFAULT = (DisruptionBudget(),)
_HUNDRED = 100
_INT32 = 2**32
_MOST_SHOWN = 24


@dataclass(frozen=True, slots=True)
class PoolState:
    """total: nodes that count; disrupting and not_ready: those that already use up every reason's budget, each once."""

    total: int = 0
    disrupting: int = 0
    not_ready: int = 0


def pool_states(bins: Iterable[Bin]) -> dict[str, PoolState]:
    """By pool, counted as Karpenter's disruption controller does: initialized nodes whose instance is not terminating yet. A pool without
    any such node is absent."""
    counts: dict[str, list[int]] = {}
    for item in bins:
        if item.node is None or item.node_claim is None:
            continue
        if item.node.label(INITIALIZED_LABEL) != "true" or item.node_claim.condition("InstanceTerminating") == "True":
            continue
        count = counts.setdefault(item.node_pool, [0, 0, 0])
        count[0] += 1
        if item.node_claim.deleting or item.node.is_disrupted:
            count[1] += 1
        elif not item.node.ready:
            count[2] += 1
    return {pool: PoolState(*count) for pool, count in counts.items()}


def with_new_nodes(states: Mapping[str, PoolState], pools: Iterable[str]) -> dict[str, PoolState]:
    """The states once new nodes are ready. pools: the NodePool of each of them."""
    found = dict(states)
    for pool in pools:
        state = found.get(pool, PoolState())
        found[pool] = replace(state, total=state.total + 1)
    return found


def pool_state(pool: str, bins: Iterable[Bin]) -> PoolState:
    """The state of one pool; of several, `pool_states` counts all at once."""
    return pool_states(item for item in bins if item.node_pool == pool).get(pool, PoolState())


def reasons_of(pool: NodePool) -> tuple[str, ...]:
    """The reasons to report: Karpenter's three, and others that the pool's budgets name."""
    named = {reason for budget in pool.budgets or () for reason in budget.reasons or ()}
    return (*REASONS, *sorted(named - set(REASONS)))


def allowed(pool: NodePool, reason: str, state: PoolState, now: datetime) -> int | None:
    """How many more nodes may be disrupted for this reason now; None: any number."""
    return outcome(pool, reason, state, now).allowed


def outcome(pool: NodePool, reason: str, state: PoolState, now: datetime) -> BudgetOutcome:
    """The budget of one pool for one reason at one instant, and why it is what it is."""
    terms = terms_of(pool, reason, state)
    return terms.outcome(next((term for term in terms.terms if term.is_open(now)), None))


def budget_outcomes(
    pools: Iterable[NodePool], states: Mapping[str, PoolState], now: datetime
) -> tuple[BudgetOutcome, ...]:
    """Every pool and reason, in the order of the pools."""
    return tuple(
        outcome(pool, reason, states.get(pool.name, PoolState()), now) for pool in pools for reason in reasons_of(pool)
    )


@dataclass(frozen=True, slots=True)
class Term:
    """One budget as it counts for one reason. limit: nodes; schedule None: always open; index: which of the budgets."""

    limit: int
    schedule: str | None
    duration: timedelta
    index: int

    def is_open(self, now: datetime) -> bool:
        return self.schedule is None or is_open(self.schedule, self.duration, now)


@dataclass(frozen=True, slots=True)
class Terms:
    """What can bound one reason of one pool; the first of `terms` that is open binds."""

    node_pool: str
    reason: str
    state: PoolState
    budgets: tuple[DisruptionBudget, ...]
    terms: tuple[Term, ...]

    @property
    def _used(self) -> int:
        return self.state.disrupting + self.state.not_ready

    def left(self, binding: Term | None) -> int | None:
        """How many more nodes may be disrupted while this term binds; None: any number."""
        if binding is None or binding.limit >= UNBOUNDED:
            return None
        return max(0, binding.limit - self._used)

    def outcome(self, binding: Term | None) -> BudgetOutcome:
        """What holds while this term binds; None: nothing does."""
        state, left = self.state, self.left(binding)
        budget = None if binding is None or left is None else binding.limit
        why = _why_unbounded(self.budgets, self.reason) if binding is None else _why_bound(self.budgets, binding, state)
        if budget and self._used:
            why = f"{why}; {_used_words(state)} already, which leaves {left:,}"
        return BudgetOutcome(
            self.node_pool, self.reason, budget, left, state.disrupting, state.not_ready, state.total, why
        )


def terms_of(pool: NodePool, reason: str, state: PoolState) -> Terms:
    """The pool's budgets as they count for the reason, those that bind first at the front."""
    budgets = _DEFAULT if pool.budgets is None else pool.budgets
    broken = next((index for index, budget in enumerate(budgets) if _why_not_evaluated(budget)), None)
    if broken is not None:
        return Terms(pool.name, reason, state, budgets, (Term(0, None, timedelta(0), broken),))
    ranked: list[tuple[tuple[bool, int, bool, int], Term]] = []
    for index, budget in enumerate(budgets):
        limit = limit_of(budget.nodes, state.total)
        if limit is not None and budget.reasons is not None and reason not in budget.reasons:
            continue
        term = Term(limit or 0, budget.schedule, budget.duration or timedelta(0), index)
        # Of equals the one that is always open comes first, so that fewer spans differ in nothing but their reason.
        ranked.append(((limit is not None, term.limit, budget.schedule is not None, index), term))
    ranked.sort(key=lambda pair: pair[0])
    terms = [term for _, term in ranked]
    # After the first that is always open, none ever binds.
    reach = next((rank for rank, term in enumerate(terms, 1) if term.schedule is None), len(terms))
    return Terms(pool.name, reason, state, budgets, tuple(terms[:reach]))


@lru_cache(maxsize=4096)
def limit_of(nodes: str, total: int) -> int | None:
    """A count, or a share rounded up; None: it cannot be read. Counts wrap around at 32 bits, as they do there."""
    number = whole_number(nodes)
    if number is not None:
        return (number + _INT32 // 2) % _INT32 - _INT32 // 2
    share = whole_number(nodes.removesuffix("%")) if nodes.endswith("%") else None
    return None if share is None else -(-total * share // _HUNDRED)


def _why_not_evaluated(budget: DisruptionBudget) -> str | None:
    """Why the budget cannot be evaluated, so that Karpenter closes the pool; None if it can."""
    if budget.unreadable:
        return budget.unreadable
    if budget.schedule is None:
        return None if budget.duration is None else "it has a duration and no schedule"
    try:
        parse_cron(budget.schedule)
    except Invalid as error:
        return error.message
    return None


def _why_bound(budgets: Sequence[DisruptionBudget], term: Term, state: PoolState) -> str:
    budget = budgets[term.index]
    name = "the only budget" if len(budgets) == 1 else f"budgets[{term.index}]"
    if budget.origin is not None:
        name = budget.origin.name
    broken = _why_not_evaluated(budget)
    if broken is not None:
        return f"{name} cannot be evaluated, so that nothing may go, for any reason: {broken}"
    limit = limit_of(budget.nodes, state.total)
    if limit is None:
        return (
            f"{name} has nodes {_shown(budget.nodes)!r}, which Karpenter cannot read, so that nothing may go, for any reason, "
            "while that budget is open"
        )
    return f"{name} binds: {_limit_words(budget.nodes, limit, state.total)}{_window_words(budget)}"


def _shown(nodes: str) -> str:
    return nodes if len(nodes) <= _MOST_SHOWN else f"{nodes[:_MOST_SHOWN]}…"


def _limit_words(nodes: str, limit: int, total: int) -> str:
    shown = _shown(nodes)
    if nodes.endswith("%"):
        share = f"{shown} of {counted(total, 'node')}"
        return f"{share} {'is' if limit * _HUNDRED == total * (whole_number(nodes[:-1]) or 0) else 'rounds up to'} {limit:,}"
    if whole_number(nodes) != limit:
        return f"{shown} is more than Karpenter can count and becomes {limit:,}"
    return f"{counted(limit, 'node')} at most" if limit else "no node at all"


def _window_words(budget: DisruptionBudget) -> str:
    if budget.schedule is None:
        return ""
    cron = parse_cron(budget.schedule)
    if cron.never_fires:
        return f", always, because Karpenter takes {budget.schedule!r}, which never comes, as always open"
    if budget.origin is not None:
        return budget.origin.window
    return f", for {format_duration(budget.duration or timedelta(0))} from each {budget.schedule!r} (UTC)"


def _why_unbounded(budgets: Sequence[DisruptionBudget], reason: str) -> str:
    if not budgets:
        return "the list of budgets is empty: any number may go"
    if any(budget.reasons is None or reason in budget.reasons for budget in budgets):
        return f"no budget for {reason} is open: any number may go"
    return f"no budget names {reason}: any number may go"


def _used_words(state: PoolState) -> str:
    parts = [
        f"{count:,} {words}"
        for count, words in ((state.disrupting, "disrupting"), (state.not_ready, "not ready"))
        if count
    ]
    return " and ".join(parts)
