"""Findings as GitHub workflow commands (`::error file=…`). Called by `headroom validate --output github`."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.findings import Finding, Severity

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
    message = f"{about}{finding.message}" + (f"\n{finding.hint}" if finding.hint else "")
    settings = ",".join(f"{name}={_property(text)}" for name, text in properties.items())
    return f"::{_COMMANDS[finding.severity]} {settings}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
