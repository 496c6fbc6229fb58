"""Findings as JSON (`headroom.dev/findings/v1`), as text, as a row of a page, as GitHub workflow commands and as SARIF 2.1.0."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from reconciler import __version__
from reconciler.model.findings import Finding, Severity, help_page
from reconciler.model.refs import SourcePosition, counted
from reconciler.report.escaping import (
    Paint,
    members,
    plain,
    sarif_text,
    terminal,
    terminal_lines,
    timestamp,
    uri_path,
    visible,
    workflow_data,
    workflow_property,
    wrapped,
)

FINDINGS_SCHEMA = "headroom.dev/findings/v1"
_SEVERITY_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
MOST_RESULTS = 25_000
"""GitHub's limit for one run."""
_NOWHERE = SourcePosition("in-no-file", 1)
"""Where a finding without a file is in SARIF: GitHub refuses a whole document for one result without a place."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def findings_document(findings: Iterable[Finding], now: datetime) -> dict[str, Any]:
    """What `headroom validate --output json` prints."""
    return {
        "schemaVersion": FINDINGS_SCHEMA,
        "now": timestamp(now),
        "findings": [finding_row(finding) for finding in findings],
    }


def finding_row(finding: Finding) -> dict[str, Any]:
    return {
        **members(finding, "code", "severity", "message"),
        **members(finding.position, "file", "line", "column"),
        **members(finding.ref, "kind", "namespace", "name"),
        **members(finding, "path", "hint"),
    }


def finding_lines(findings: Iterable[Finding], paint: Paint = plain, width: int | None = None) -> list[str]:
    """Two lines for each finding: position and message, then the hint. width: the columns to wrap at."""
    return [
        piece
        for finding in findings
        for line in words_lines(finding_words(finding), paint)
        for piece in wrapped(line, width)
    ]


def words_lines(row: Mapping[str, str], paint: Paint) -> list[str]:
    """The lines of one finding. row: of `finding_words`."""
    where = terminal(f"{row['where']}: ") if row["where"] else ""
    severity = paint(_SEVERITY_STYLES[Severity(row["severity"])], row["severity"])
    code = paint("dim", f"[{row['code']}]")
    told = f"  {where}{severity}: {terminal(row['message'])} {code}"
    return [told, *([paint("dim", f"      {terminal(row['hint'])}")] if row["hint"] else [])]


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


def finding_words(finding: Finding) -> dict[str, str]:
    return {
        "where": str(finding.position) if finding.position else "",
        "severity": str(finding.severity),
        "message": finding.full_message,
        "code": finding.code,
        "hint": finding.hint,
    }


def github_annotations(findings: Iterable[Finding]) -> str:
    """One line per finding."""
    return "".join(f"{_annotation(finding)}\n" for finding in findings)


def _annotation(finding: Finding) -> str:
    place = finding.position
    properties = {} if place is None else {"file": place.file, "line": str(place.line), "col": str(place.column)}
    properties["title"] = finding.code
    message = visible(finding.full_message) + (f"\n{visible(finding.hint)}" if finding.hint else "")
    settings = ",".join(f"{name}={workflow_property(visible(text))}" for name, text in properties.items())
    return f"::{_COMMANDS[finding.severity]} {settings}::{workflow_data(message)}"


def sarif_document(findings: Iterable[Finding]) -> dict[str, Any]:
    """One run, with a rule for each code that occurs."""
    rows = list(findings)[:MOST_RESULTS]
    codes = sorted({finding.code for finding in rows})
    rules = [
        {
            "id": code,
            "name": "".join(word.capitalize() for word in code.split("-")),
            "shortDescription": {"text": code.replace("-", " ")},
            "help": {"text": f"See {help_page(code)}"},
            "helpUri": help_page(code),
        }
        for code in codes
    ]
    seen: Counter[str] = Counter()
    results = []
    for finding in rows:
        print_ = _fingerprint(finding)
        seen[print_] += 1
        prints = {"headroomFinding/v1": f"{print_}:{seen[print_]}"}
        results.append({**_result(finding, codes), "partialFingerprints": prints})
    driver = {"name": "headroom", "semanticVersion": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _fingerprint(finding: Finding) -> str:
    """A fingerprint that does not change when lines move, so that a dismissed finding stays dismissed."""
    file = "" if finding.position is None else finding.position.file
    words = "\0".join((finding.code, file, str(finding.ref), finding.path, finding.message))
    return hashlib.sha256(words.encode(errors="backslashreplace")).hexdigest()[:32]


def _result(finding: Finding, codes: list[str]) -> dict[str, Any]:
    text = "; ".join(filter(None, (finding.full_message, finding.hint)))
    where = finding.position or _NOWHERE
    artifact = {"uri": uri_path(where.file), "uriBaseId": "%SRCROOT%"}
    region = {"startLine": where.line, "startColumn": where.column}
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": sarif_text(text if text.endswith("?") else f"{text}.")},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
    }
