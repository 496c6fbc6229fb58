"""Findings as GitHub workflow commands (`::error file=…`). Called by `headroom validate --output github`."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.findings import Finding, Severity
from reconciler.report.escaping import visible, workflow_data, workflow_property

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def github_annotations(findings: Iterable[Finding]) -> str:
    """One line per finding."""
    return "".join(f"{_annotation(finding)}\n" for finding in findings)


def _annotation(finding: Finding) -> str:
    properties = {}
    if finding.position is not None:
        properties = {
            "file": finding.position.file,
            "line": str(finding.position.line),
            "col": str(finding.position.column),
        }
    properties["title"] = finding.code
    about = f"{finding.ref}: " if finding.ref else ""
    message = visible(f"{about}{finding.message}") + (f"\n{visible(finding.hint)}" if finding.hint else "")
    settings = ",".join(f"{name}={workflow_property(visible(text))}" for name, text in properties.items())
    return f"::{_COMMANDS[finding.severity]} {settings}::{workflow_data(message)}"
