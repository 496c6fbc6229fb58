"""The JSON that is written fast is the very text that Python's own encoder writes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.json_text import indented, to_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=30
)


@given(DOCUMENTS)
def test_it_is_what_python_writes(document: Any) -> None:
    assert indented(document) == json.dumps(document, indent=2, ensure_ascii=False)


@given(st.lists(st.dictionaries(st.text(), SCALARS, max_size=3), max_size=5), st.text(alphabet='{}[],:" \n'))
def test_tables_too_whatever_their_text_looks_like(rows: list[dict[str, Any]], text: str) -> None:
    table = [{**row, text: text} for row in rows]
    for document in (rows, table, {"rows": table, "more": [table]}):
        assert indented(document) == json.dumps(document, indent=2, ensure_ascii=False)


def test_commands_print_it() -> None:
    rows: dict[str, Any] = {"rows": [{"from": "Köln, \n 2026", "to": None}], "none": [], "empty": {}, "pair": (1, 2)}
    assert to_json(rows) == json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
