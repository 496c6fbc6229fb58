"""What merging would change: two trees of one repository, planned on one cluster as if everything had settled. `headroom diff` and the
daemon's reports on pull requests call it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.cycle import Cycle
from reconciler.model.changes import ObjectChange, Plan
from reconciler.model.declared import REMOVALS_TRAILER, SourceTree, located
from reconciler.model.findings import Finding
from reconciler.model.nodes import ForetoldDrift
from reconciler.model.refs import POD_KIND, counted
from reconciler.model.rules import UNCAPPED, Caps
from reconciler.model.timelines import CapacityTimeline
from reconciler.plan.bins import all_bins
from reconciler.plan.holding.replacement import foretold_drift
from reconciler.plan.launching.caps import Standing, cap_notes, within_caps
from reconciler.render.check import rendered_pairs
from reconciler.report.difference.difference import Details, Difference, difference
from reconciler.report.difference.headline import Gates
from reconciler.report.difference.objects import document_changes
from reconciler.source.merging import Sides
from reconciler.spending.month import as_declared, spending
from reconciler.stages.placement import lowered_limits
from reconciler.stages.state import PassResult

_TEMPLATE_SUFFIX = ".j2"


@dataclass(frozen=True, slots=True)
class Comparison:
    """timelines: of the coming week, base and head. timings: seconds by stage, of both sides."""

    change: Difference
    timelines: tuple[CapacityTimeline, CapacityTimeline] | None
    timings: Mapping[str, float] = field(default_factory=dict)


def compare(
    cycle: Cycle, sides: Sides, *, caps: Caps = UNCAPPED, gates: Gates | None = None, foreign: bool = False
) -> Comparison:
    """Compares the two sides. cycle: a separate one, with `UNCAPPED` rules. caps: the daemon's. foreign: whether the head is untrusted, such
    as a fork's, so that its templates are left out. Raises the failure of a side that cannot be planned."""
    head_tree, unjudged = sides.head, list[str]()
    if foreign:
        head_tree, unjudged = _without_templates_of(sides.head, sides.base)
    base, base_timeline = _planned(cycle, replace(sides.base, stalled=None))  # a folder that it lacks is new
    head, head_timeline = _planned(cycle, head_tree)
    notes = _cap_notes(caps, head.required_plan)
    if not head_tree.removals_allowed:
        notes += _removal_notes(caps, base, head)
    drift: tuple[ForetoldDrift, ...] = ()
    lowered: Iterable[Finding] = ()
    spent = None
    if base.basis is not None and head.basis is not None:
        pools = base.basis.facts.effective.node_pools, head.basis.facts.effective.node_pools
        room, facts = head.basis.room, head.basis.facts
        drift = foretold_drift(*pools, all_bins(room), facts.now)
        lowered = located(lowered_limits(*pools, room, facts.instance_types), head.written)
        replaced = frozenset(name for item in drift if item.budget != 0 for name in item.nodes)
        spent = (spending(as_declared(base.basis)), spending(as_declared(head.basis, replaced)))
    change = difference(
        base.required_plan,
        head.required_plan,
        Details(
            written=(base.written, head.written),
            in_cluster=() if head.basis is None else head.basis.room.objects.keys(),
            lowered=tuple(lowered),
            templates=_by_templates(base, head),
            spending=spent,
            drift=drift,
            unjudged=tuple(unjudged),
            kept_as_before=() if head.basis is None else tuple(sorted(head.basis.facts.effective.kept)),
            conflicts=sides.conflicts,
            stalled=_new_stall(base, head),
            notes=notes,
            names=sides.names,
        ),
    )
    change = replace(change, failed_gates=(gates or Gates()).failures(change))
    timelines = None if base_timeline is None or head_timeline is None else (base_timeline, head_timeline)
    return Comparison(change, timelines, summed((base.timings, head.timings)))


def summed(timings: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The seconds of each stage in all of these."""
    total: dict[str, float] = {}
    for each in timings:
        for stage, seconds in each.items():
            total[stage] = total.get(stage, 0.0) + seconds
    return total


def _planned(cycle: Cycle, tree: SourceTree) -> tuple[PassResult, CapacityTimeline | None]:
    """The plan of one side. Raises failures of the cluster or of its prices. Errors in the tree itself are findings."""
    result = cycle.plan(tree=tree, settled=True)
    if result.failure is not None:
        raise result.failure
    outlook = cycle.outlook
    return result, None if outlook is None else outlook.ahead()


def _new_stall(base: PassResult, head: PassResult) -> str:
    was, now = (None if side.tree is None else side.tree.stalled for side in (base, head))
    return now[1] if now is not None and was is None else ""


def _by_templates(base: PassResult, head: PassResult) -> tuple[ObjectChange, ...]:
    """Changes of NodePools and placeholders that come from other templates."""
    if base.templates is None or head.templates is None:
        return ()
    pairs = rendered_pairs(base.templates, head.templates, head.written)
    return document_changes(pairs, "rendered by another template")


def _without_templates_of(head: SourceTree, base: SourceTree) -> tuple[SourceTree, list[str]]:
    """The head with the base's templates in place of its own, and a finding that says so."""
    own = {path: content for path, content in head.files.items() if path.endswith(_TEMPLATE_SUFFIX)}
    trusted = {path: content for path, content in base.files.items() if path.endswith(_TEMPLATE_SUFFIX)}
    if own == trusted:
        return head, []
    files = {path: content for path, content in head.files.items() if path not in own} | trusted
    changed = sorted(path for path in own.keys() | trusted.keys() if own.get(path) != trusted.get(path))
    note = f"{', '.join(changed)}, since templates of a fork are not rendered"
    return replace(head, files=files), [note]


def _cap_notes(caps: Caps, head: Plan) -> tuple[str, ...]:
    """Notes about what the daemon's caps would cut. The figures are without caps."""
    made = [item.planned for item in head.node_claims.create if not item.made_by]
    new = Counter(head.new_node_pools)
    standing = Standing(
        head.cost.per_hour_before, {row.node_pool: row.total - new[row.node_pool] for row in head.budgets}
    )
    capped = within_caps(
        made,
        caps,
        standing,
        order={outcome.demand.ref: index for index, outcome in enumerate(head.demands)},
        whole={outcome.demand.ref for outcome in head.demands if outcome.demand.whole},
    )
    return tuple(f"{note}; the figures count all of them" for note in cap_notes(capped))


def _removal_notes(caps: Caps, base: PassResult, head: PassResult) -> tuple[str, ...]:
    """Says that the daemon removes slowly what the head no longer declares, where that is much."""
    removed = {item.ref for item in base.written} - {item.ref for item in head.written}
    plan = base.required_plan
    holders = [{part.demand for part in place.holdings if part.demand.kind != POD_KIND} for place in plan.occupied]
    holders += [{part.demand for part in item.planned.holdings} for item in plan.node_claims.create if not item.made_by]
    held = sum(map(bool, holders))
    nodes = sum(bool(demands) and demands <= removed for demands in holders)
    objects, most, most_nodes = len(removed), caps.most_objects(len(base.written)), caps.most_nodes(held)
    if objects <= most and nodes <= most_nodes:
        return ()
    note = (
        f"{counted(objects, 'object')} that only the base declares hold {nodes:,} of {held:,} nodes:"
        f" the daemon deletes at most {most:,} objects and releases at most {most_nodes:,} nodes for removals within an hour,"
        f' unless a commit has the trailer "{REMOVALS_TRAILER}: true"'
    )
    return (note,)
