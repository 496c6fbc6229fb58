"""Schedules with errors, as in their files, for the page's editor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.findings import Finding, Severity
from reconciler.report.schedules.page import BrokenDocument

_SEPARATOR = re.compile(r"---(?:\s|$)")


def broken_documents(files: Mapping[str, bytes], findings: Iterable[Finding], kind: str) -> list[BrokenDocument]:
    """The documents of the kind that have an error, in the order of files and lines."""
    found: dict[tuple[str, int], BrokenDocument] = {}
    for finding in findings:
        place = finding.position
        if finding.severity is not Severity.ERROR or place is None or place.file not in files:
            continue
        lines = files[place.file].decode(errors="replace").splitlines()
        first, last = _bounds(lines, place.line)
        text = "\n".join(lines[first - 1 : last])
        if finding.ref is None and kind not in text:
            continue
        name = f"{place.file}:{first}" if finding.ref is None else f"{finding.ref.namespace}/{finding.ref.name}"
        known = found.get((place.file, first))
        if known is None or finding.ref is not None:
            found[place.file, first] = BrokenDocument(name, place.file, (first, last), f"{text}\n")
    return [found[key] for key in sorted(found)]


def _bounds(lines: Sequence[str], line: int) -> tuple[int, int]:
    """The first and the last line, from 1, of the document that contains the line, without separators."""
    inside = min(max(line, 1), max(len(lines), 1))
    separators = [number for number, text in enumerate(lines, 1) if _SEPARATOR.match(text)]
    first = max((number + 1 for number in separators if number <= inside), default=1)
    last = min((number - 1 for number in separators if number > inside), default=len(lines))
    return first, last
