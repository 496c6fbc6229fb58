"""One NodePool, explained: the nodes that the plan makes in it, what it has no room for, its budgets and its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.model.changes import BudgetOutcome, DemandOutcome, NodeClaimCreation, ObjectChange, Plan
from reconciler.model.findings import Finding
from reconciler.model.nodes import NodePool
from reconciler.report.budgets.document import budget_row
from reconciler.report.escaping import terminal_lines
from reconciler.report.explanation.document import EXPLAIN_SCHEMA
from reconciler.report.findings.document import finding_row
from reconciler.report.findings.text import finding_lines
from reconciler.report.json_text import timestamp
from reconciler.report.paint import Paint, plain
from reconciler.report.plan.objects import object_lines
from reconciler.report.plan.words import held, offered
from reconciler.report.words import counted


@dataclass(frozen=True, slots=True)
class NodePoolExplanation:
    """created: new nodes. refused: by demand, why the pool takes no more of its chunks."""

    plan: Plan
    pool: NodePool
    created: tuple[NodeClaimCreation, ...]
    refused: tuple[tuple[str, str], ...]
    budgets: tuple[BudgetOutcome, ...]
    changes: tuple[ObjectChange, ...]
    findings: tuple[Finding, ...]


def node_pool_explanation(plan: Plan, pool: NodePool) -> NodePoolExplanation:
    return NodePoolExplanation(
        plan,
        pool,
        tuple(item for item in plan.node_claims.create if item.planned.node_pool == pool.name),
        tuple((str(outcome.demand.ref), words) for outcome in plan.demands for words in _refusals(outcome, pool.name)),
        tuple(row for row in plan.budgets if row.node_pool == pool.name),
        tuple(change for change in plan.objects if change.ref.kind == "NodePool" and change.ref.name == pool.name),
        tuple(
            item
            for item in plan.findings
            if item.ref is not None and (item.ref.kind, item.ref.name) == ("NodePool", pool.name)
        ),
    )


def _refusals(outcome: DemandOutcome, pool: str) -> list[str]:
    return [reason.example for reason in outcome.unplaced_reasons if f"NodePool {pool} " in f"{reason.example} "]


def node_pool_explanation_document(found: NodePoolExplanation) -> dict[str, Any]:
    """As `headroom.dev/explain/v1`."""
    return {
        "schemaVersion": EXPLAIN_SCHEMA,
        "now": timestamp(found.plan.now),
        "nodePool": {
            "name": found.pool.name,
            "creates": [item.name for item in found.created],
            "refused": [{"demand": demand, "reason": words} for demand, words in found.refused],
            "budgets": [budget_row(row) for row in found.budgets],
        },
        "findings": [finding_row(finding) for finding in found.findings],
    }


def node_pool_explanation_text(found: NodePoolExplanation, *, paint: Paint = plain, width: int | None = None) -> str:
    """For a terminal."""
    pool = found.pool
    where = f"  {paint('dim', str(pool.position))}" if pool.position else ""
    lines = [paint("bold", f"NodePool/{pool.name}") + where]
    if pool.replicas is not None:
        lines.append(f"  static: {counted(pool.replicas, 'node')}")
    lines.append(f"  {counted(len(found.created), 'new node')} in this plan")
    for item in found.created:
        lines.append(f"    {item.name}  {offered(item)}")
        lines.append(f"      for {held(item.planned.holdings)}")
    lines += [f"  refused {demand}: {words}" for demand, words in found.refused]
    for row in found.budgets:
        allowed = "no limit" if row.allowed is None else f"{row.allowed:,} allowed"
        lines.append(f"  disruptions for {row.reason}: {allowed}: {row.why}")
    for change in found.changes:
        lines += object_lines(change, paint)
    if found.findings:
        lines += ["  findings:", *(f"  {line}" for line in finding_lines(found.findings, paint))]
    return terminal_lines(lines, paint, width)
