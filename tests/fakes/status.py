"""What a daemon would show of a report, for tests of what is drawn from it."""

from __future__ import annotations

from typing import Any

from reconciler.report.status.document import Live, PassReport, daemon_status_document, live_document
from reconciler.spending.steady import standing_nodes


def shown(report: PassReport, live: Live | None = None) -> dict[str, Any]:
    """The document at the end of the pass."""
    seen = report.seen
    stands = None if report.plan is None else standing_nodes(report.plan, seen.view, seen.instance_types)
    return live_document(daemon_status_document(report, stands), live or Live(), report.finished)
