"""The page about metrics names every metric that the daemon serves, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.telemetry.test_alerts import served

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
PARTS = ("_bucket", "_count", "_sum")


def test_every_metric_is_on_its_page() -> None:
    named = set(re.findall(r"`((?:headroom|karpenter)_[a-z_]+)`", PAGE.read_text(encoding="utf-8")))
    exist = set()
    for name in served():
        part = next((part for part in PARTS if name.endswith(part)), "")
        exist.add(name.removesuffix(part))
    assert exist - named == set()
    assert named - exist == {"karpenter_scheduled_capacity"}, "which stands in the daemon's own collector"
