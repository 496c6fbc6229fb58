"""Findings as SARIF 2.1.0, for code scanning. Called by `headroom validate --output sarif`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from reconciler import __version__
from reconciler.model.findings import Finding, Severity, help_page
from reconciler.report.escaping import sarif_text, uri_path

MOST_RESULTS = 25_000
"""GitHub's limit for one run."""

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif_document(findings: Iterable[Finding]) -> dict[str, Any]:
    """One run, with a rule for each code that occurs. Findings without a file are reported for the whole repository."""
    rows = list(findings)[:MOST_RESULTS]
    codes = sorted({finding.code for finding in rows})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "headroom",
                        "semanticVersion": __version__,
                        "rules": [
                            {
                                "id": code,
                                "name": _pascal(code),
                                "shortDescription": {"text": code.replace("-", " ")},
                                "helpUri": help_page(code),
                            }
                            for code in codes
                        ],
                    },
                },
                "columnKind": "unicodeCodePoints",
                "results": _results(rows, codes),
            },
        ],
    }


def _pascal(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("-"))


def _results(rows: Iterable[Finding], codes: list[str]) -> list[dict[str, Any]]:
    seen: dict[str, int] = {}
    results = []
    for finding in rows:
        print_ = _fingerprint(finding)
        seen[print_] = seen.get(print_, 0) + 1
        results.append(
            {**_result(finding, codes), "partialFingerprints": {"headroomFinding/v1": f"{print_}:{seen[print_]}"}}
        )
    return results


def _fingerprint(finding: Finding) -> str:
    """A fingerprint that does not change when lines move, so that a dismissed finding stays dismissed."""
    file = "" if finding.position is None else finding.position.file
    words = "\0".join((finding.code, file, str(finding.ref), finding.path, finding.message))
    return hashlib.sha256(words.encode(errors="backslashreplace")).hexdigest()[:32]


def _result(finding: Finding, codes: list[str]) -> dict[str, Any]:
    about = f"{finding.ref}: " if finding.ref else ""
    hint = f" {finding.hint[0].upper()}{finding.hint[1:]}." if finding.hint else ""
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": sarif_text(f"{about}{finding.message}.{hint}")},
    }
    if finding.position is not None:
        result["locations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": uri_path(finding.position.file),
                        "uriBaseId": "%SRCROOT%",
                    },
                    "region": {"startLine": finding.position.line, "startColumn": finding.position.column},
                },
            },
        ]
    return result
