"""A finding as a row for the Markdown and HTML templates."""

from __future__ import annotations

from reconciler.model.findings import Finding


def finding_row(finding: Finding) -> dict[str, str]:
    return {
        "where": str(finding.position) if finding.position else "",
        "severity": str(finding.severity),
        "message": f"{finding.ref}: {finding.message}" if finding.ref else finding.message,
        "code": finding.code,
        "hint": finding.hint,
    }
