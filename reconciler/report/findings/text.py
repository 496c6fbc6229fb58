"""Findings as text for a terminal. Called by `headroom validate`, and part of every other report."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.findings import Finding, Severity
from reconciler.report.escaping import terminal, terminal_lines
from reconciler.report.paint import Paint, plain
from reconciler.report.words import counted
from reconciler.report.wrapping import wrapped

_SEVERITY_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def finding_lines(findings: Iterable[Finding], paint: Paint = plain, width: int | None = None) -> list[str]:
    """Two lines for each finding: position and message, then the hint. width: the columns to wrap at."""
    lines: list[str] = []
    for finding in findings:
        where = terminal(f"{finding.position}: ") if finding.position else ""
        severity = paint(_SEVERITY_STYLES[finding.severity], str(finding.severity))
        about = terminal(f"{finding.ref}: ") if finding.ref else ""
        told = f"  {where}{severity}: {about}{terminal(finding.message)} {paint('dim', f'[{finding.code}]')}"
        lines += wrapped(told, width)
        if finding.hint:
            lines += [paint("dim", line) for line in wrapped(f"      {terminal(finding.hint)}", width)]
    return lines


def findings_text(
    findings: Iterable[Finding], *, documents: int, files: int, paint: Paint = plain, width: int | None = None
) -> str:
    """The output of `headroom validate`: every finding, then one line with counts."""
    rows = list(findings)
    counts = [
        counted(sum(finding.severity is severity for finding in rows), noun)
        for severity, noun in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note"))
    ]
    read = f"{counted(documents, 'document')} in {counted(files, 'file')}"
    return terminal_lines([*finding_lines(rows, paint, width), paint("bold", f"{read}: {', '.join(counts)}.")], paint)
