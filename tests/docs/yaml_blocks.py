"""What a page of the docs tells its reader to apply."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

_DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def yaml_blocks(page: str) -> list[list[dict[str, Any]]]:
    """The documents of each YAML block of `docs/PAGE`, in the page's order."""
    text = (_DOCS / page).read_text()
    return [list(yaml.safe_load_all(block)) for block in _BLOCK.findall(text)]
