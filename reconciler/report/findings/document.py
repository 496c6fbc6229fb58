"""Findings as JSON (`headroom.dev/findings/v1`). Called by `headroom validate`, and part of every other document."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from reconciler.model.findings import Finding
from reconciler.report.json_text import timestamp

FINDINGS_SCHEMA = "headroom.dev/findings/v1"


def findings_document(findings: Iterable[Finding], now: datetime) -> dict[str, Any]:
    """What `headroom validate --output json` prints."""
    return {
        "schemaVersion": FINDINGS_SCHEMA,
        "now": timestamp(now),
        "findings": [finding_row(finding) for finding in findings],
    }


def finding_row(finding: Finding) -> dict[str, Any]:
    position, ref = finding.position, finding.ref
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "file": None if position is None else position.file,
        "line": None if position is None else position.line,
        "column": None if position is None else position.column,
        "kind": None if ref is None else ref.kind,
        "namespace": None if ref is None else ref.namespace,
        "name": None if ref is None else ref.name,
        "path": finding.path,
        "hint": finding.hint,
    }
