"""A whole pass over a snapshot with a node that is being deleted: where its pods would go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.examples.unplaceable import cases, write_snapshot
from tests.headroom_command import headroom

ROOT = Path(__file__).resolve().parents[3]


def what_if(folder: Path, *words: str) -> dict[str, Any]:
    case = dict(cases()["cpu short by 200m"])
    case["nodes"] = {**case["nodes"], "node-3": {"zone": "zone-a", "type": "m-8x", "pool": "general", "deleting": True}}
    case["running"] = [
        *case["running"],
        {"name": "api-1", "node": "node-3", "requests": {"cpu": "1"}},
        {"name": "api-2", "node": "node-3", "requests": {"cpu": "3"}},
    ]
    (folder / "snapshot").mkdir()
    (folder / "repository").mkdir()
    write_snapshot(case, folder / "snapshot")
    where = ("--repo", str(folder / "repository"), "--cluster", f"snapshot:{folder / 'snapshot'}")
    done = headroom("plan", *words, *where, "--check-placement", "--output=json", folder=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_fits_what_is_there_and_one_needs_a_new_node(tmp_path: Path) -> None:
    plan = what_if(tmp_path, "--include-pending")
    assert plan["findings"] == []
    assert plan["leaving"] == [{"node": "node-3", "placedOnExisting": 1, "placedOnNew": 1, "unplaced": 0}]
    assert plan["existing"] == [{"node": "node-1", "holds": [{"demand": "Pod/shop/api-1", "count": 1}]}]
    (made,) = plan["nodeClaims"]["create"]
    assert made["holds"] == [{"demand": "Pod/shop/api-2", "count": 1}]


def test_without_the_flag_they_stay_where_they_run(tmp_path: Path) -> None:
    plan = what_if(tmp_path)
    assert plan["nodeClaims"]["create"] == []
    assert "leaving" not in plan
