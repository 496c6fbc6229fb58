"""What merging would change, as JSON (`headroom.dev/diff/v1`). Called by `headroom diff`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler.model.changes import NodeClaimAction, NodeClaimCreation
from reconciler.report.difference.difference import Difference
from reconciler.report.findings.document import finding_row
from reconciler.report.plan.document import object_row, plan_document, static_pool_row

DIFF_SCHEMA = "headroom.dev/diff/v1"


def difference_document(change: Difference) -> dict[str, Any]:
    """As `headroom.dev/diff/v1`: both plans whole, and what differs."""
    base, head = plan_document(change.base), plan_document(change.head)

    def rows(actions: Iterable[NodeClaimAction], document: dict[str, Any]) -> list[dict[str, Any]]:
        names = {(action.node_claim, action.node) for action in actions}
        claims = document["nodeClaims"]
        return [row for row in (*claims["release"], *claims["delete"]) if (row["name"], row["node"]) in names]

    def creations(items: Iterable[NodeClaimCreation], document: dict[str, Any]) -> list[dict[str, Any]]:
        names = {item.name for item in items}
        return [row for row in document["nodeClaims"]["create"] if row["name"] in names]

    return {
        "schemaVersion": DIFF_SCHEMA,
        "base": base,
        "head": head,
        "changes": {
            "demands": [
                {
                    "kind": item.ref.kind,
                    "namespace": item.ref.namespace,
                    "name": item.ref.name,
                    "before": item.before,
                    "after": item.after,
                    "unplaced": item.unplaced,
                }
                for item in change.demands
            ],
            "nodeClaims": {
                "added": creations(change.added_nodes, head),
                "removed": creations(change.removed_nodes, base),
                "released": rows(change.released, head),
                "kept": rows(change.kept, base),
            },
            "objects": [object_row(item) for item in change.objects],
            "staticPools": [static_pool_row(item) for item in change.static_pools],
            "cost": {
                "perHourBefore": round(change.per_hour_before, 6),
                "perHourAfter": round(change.per_hour_after, 6),
                "perMonthDelta": round(change.per_month_delta, 6),
                "currency": change.head.cost.currency,
            },
            "findings": {
                "new": [finding_row(finding) for finding in change.new_findings],
                "fixed": [finding_row(finding) for finding in change.fixed_findings],
            },
        },
    }
