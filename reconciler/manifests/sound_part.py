"""What the rules of a kind say of a document whose structure is wrong in places, so that people see all errors at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.document import Path, path_text
from reconciler.manifests.inspection import Inspection
from reconciler.model.findings import Finding

_LONG = 200
"""Characters. A longer text that is wrong is not shown to rules: some take long with texts that the schema does not allow."""

Rules = Callable[[Inspection], None]


def findings_of_the_rest(inspection: Inspection, rules: Rules) -> list[Finding]:
    """What the rules find both with and without the wrong values. rules: those that assume a valid structure.

    With a wrong value a rule may find what is not so, or fail. Without it, one may miss the value; if the former failed, findings
    about what surrounds a wrong value are therefore left out. So are those around a value that is too large to be shown to it.
    """
    without = _found(inspection, rules, only_large=False)
    if not without:
        return []
    with_wrong = _found(inspection, rules, only_large=True)
    hidden = [
        path_text(inspection.written_path(path))
        for code, path in inspection.wrong
        if with_wrong is None or (code is not codes.MISSING_FIELD and _is_large(_at(inspection.body, path)))
    ]
    return [
        finding
        for finding in without
        if (with_wrong is None or finding in with_wrong) and not any(_surrounds(finding.path, path) for path in hidden)
    ]


def _found(inspection: Inspection, rules: Rules, *, only_large: bool) -> list[Finding] | None:
    """What they find when wrong values are removed; None if they cannot judge it. only_large: other wrong values stay."""
    body = copy.deepcopy(inspection.body)
    for code, path in inspection.wrong:
        if code is not codes.MISSING_FIELD:
            _remove(body, path, only_large=only_large)
        elif not only_large:
            _remove(body, path[:-1], only_large=False)  # what it is missing from
    trial = inspection.of(body)
    try:
        rules(trial)
    except Exception:  # noqa: BLE001 - whatever a rule raises on values that it was never meant to see
        return None
    return trial.findings


def _remove(node: Any, path: Path, *, only_large: bool) -> None:
    """A list goes as a whole, since the places of its items must not change. Nothing is removed of which nothing would be left."""
    first_index = next((index for index, step in enumerate(path) if isinstance(step, int)), len(path))
    *outer, last = path[:first_index] or ("",)
    for step in outer:
        node = node.get(step) if isinstance(node, dict) else None
    if outer and isinstance(node, dict) and last in node and (not only_large or _is_large(node[last])):
        del node[last]


def _at(node: Any, path: Path) -> Any:
    for step in path:
        if isinstance(node, list) and isinstance(step, int):
            node = node[step]
        else:
            node = node.get(step) if isinstance(node, dict) else None
    return node


def _is_large(value: Any) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and len(value) > _LONG)


def _surrounds(outer: str, inner: str) -> bool:
    return not outer or inner.startswith((f"{outer}.", f"{outer}["))
