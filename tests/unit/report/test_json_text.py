"""What commands print as JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.escaping import to_json

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
# Text has halves of surrogate pairs too, as names of files have that are not UTF-8.
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters())
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=30
)


@given(DOCUMENTS)
def test_it_is_the_document(document: Any) -> None:
    assert json.loads(to_json({"document": document})) == {"document": document}


def test_it_is_indented_and_in_order() -> None:
    rows: dict[str, Any] = {"rows": [{"from": "Köln, \n 2026", "to": None}], "none": [], "empty": {}, "pair": (1, 2)}
    assert to_json(rows) == json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
