"""An explanation as JSON (`headroom.dev/explain/v1`). Called by `headroom explain`."""

from __future__ import annotations

from typing import Any

from reconciler.report.explanation.demand import Explanation
from reconciler.report.findings.document import finding_row
from reconciler.report.json_text import timestamp
from reconciler.report.plan.document import demand_row
from reconciler.report.plan.domains import domain_totals

EXPLAIN_SCHEMA = "headroom.dev/explain/v1"


def explanation_document(found: Explanation) -> dict[str, Any]:
    """As `headroom.dev/explain/v1`."""
    return {
        "schemaVersion": EXPLAIN_SCHEMA,
        "now": timestamp(found.plan.now),
        "demand": demand_row(found.outcome),
        "bins": [
            {
                "node": item.node,
                "new": item.new,
                "nodePool": item.node_pool,
                "count": item.count,
                "labels": {count.key: list(count.values) for count in found.outcome.domains if count.bin == item.node},
            }
            for item in found.bins
        ],
        "domains": [
            {"key": key, "value": value, "count": count}
            for key, values in domain_totals(found.outcome).items()
            for value, count in values.items()
        ],
        "chunks": [
            {"count": group.count, "requests": dict(group.shape.requests.quantities())}
            for group in found.outcome.demand.groups
        ],
        "unused": [{"node": name, "why": why} for name, why in found.unused.items()],
        "findings": [finding_row(finding) for finding in found.findings],
    }
