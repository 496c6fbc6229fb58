"""Documents as JSON text, and instants in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from reconciler.report.escaping import json_text


def to_json(document: Mapping[str, Any]) -> str:
    """The document as printed: two spaces a level, keys in the contract's order, a newline at the end."""
    try:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    except (OverflowError, UnicodeEncodeError):  # a number beyond 64 bits, or a file's name that is not UTF-8
        text = json.dumps(document, indent=2, ensure_ascii=False)
    return json_text(text) + "\n"


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with `Z`; fractions of a second only where there are any."""
    return f"{moment.astimezone(UTC).isoformat()[:-6]}Z"
