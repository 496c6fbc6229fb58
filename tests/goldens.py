"""Files that outputs are held to. HEADROOM_GOLDEN=write renews them; read the difference, and look at pictures in a browser."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden")


def check(path: Path, text: str) -> None:
    """The file has exactly this text."""
    if os.environ.get("HEADROOM_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
