"""`headroom budgets` as a person meets it: where the numbers come from, spans, and what is refused."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler.cli.application import application
from reconciler.model.errors import Invalid
from reconciler.zone_data import time_zone
from tests.builders import manifest
from tests.fakes.embedded import node_pool
from tests.manifests import snapshot_in

NOON = "2026-11-20T12:00:00Z"
OFFICE = {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 9 * * mon-fri", "duration": "8h"}


def headroom(*words: str) -> Result:
    return CliRunner().invoke(application, ["budgets", *words])


def rows(*words: str) -> list[dict[str, Any]]:
    done = headroom(*words, "--output", "json")
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)["budgets"]
    return found


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A whole pool, and a partial one that declares only budgets."""
    folder = tmp_path / "repository"
    folder.mkdir()
    general = node_pool("general")
    general["spec"]["disruption"]["budgets"] = [{"nodes": "20%"}, OFFICE]
    batch = manifest("karpenter.sh/v1", "NodePool", "batch", spec={"disruption": {"budgets": [{"nodes": "3"}]}})
    (folder / "pools.yaml").write_text(yaml.safe_dump_all([general, batch]))
    return folder


def test_a_repository_alone_is_asked_with_numbers_of_nodes(repository: Path) -> None:
    found = rows("--repo", str(repository), "--nodes", "20", "--nodes", "general=50", "--now", NOON)
    assert [(row["nodePool"], row["reason"], row["allowed"], row["total"]) for row in found] == [
        ("batch", "Underutilized", 3, 20),
        ("batch", "Empty", 3, 20),
        ("batch", "Drifted", 3, 20),
        ("general", "Underutilized", 10, 50),
        ("general", "Empty", 10, 50),
        ("general", "Drifted", 0, 50),
    ]
    assert all("from" not in row for row in found)


def test_a_span_has_a_row_for_as_long_as_nothing_changes(repository: Path) -> None:
    span = ("--from", "2026-11-20T00:00:00Z", "--to", "2026-11-21T00:00:00Z")
    found = rows("--repo", str(repository), "--nodes", "10", "--now", NOON, *span)
    drifted = [(row["from"], row["to"], row["allowed"]) for row in found if row["reason"] == "Drifted"]
    assert drifted == [
        ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z", 3),
        ("2026-11-20T00:00:00Z", "2026-11-20T09:00:00Z", 2),
        ("2026-11-20T09:00:00Z", "2026-11-20T17:00:00Z", 0),
        ("2026-11-20T17:00:00Z", "2026-11-21T00:00:00Z", 2),
    ]


def test_pools_are_the_repositorys_and_then_the_clusters_own(repository: Path, tmp_path: Path) -> None:
    cluster = snapshot_in(tmp_path / "cluster", {"nodepools": map(node_pool, ("own", "general", "batch"))})
    words = ("--repo", str(repository), "--cluster", cluster, "--now", NOON)
    assert {row["nodePool"]: row["budget"] for row in rows(*words) if row["reason"] == "Empty"} == {
        "batch": 3,
        "general": 0,
        "own": 0,
    }
    counted = rows(*words, "--nodes", "10")
    assert {row["nodePool"]: row["budget"] for row in counted if row["reason"] == "Empty"} == {
        "batch": 3,
        "general": 2,
        "own": 10,
    }


def test_a_document_that_is_no_node_pool_is_told(repository: Path) -> None:
    text = (repository / "pools.yaml").read_text()
    (repository / "pools.yaml").write_text(text.replace("nodes: '3'", "nodes: three"))
    done = headroom("--repo", str(repository), "--nodes", "10", "--now", NOON)
    assert done.exit_code == 0
    assert "NodePool batch" not in done.stdout
    assert "error: NodePool/batch" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--nodes", "many"), "'many' is not a number of nodes: write 12, or general=12"),
        (("--nodes", "-1"), "'-1' is not a number of nodes"),
        (("--nodes", "=5"), "'=5' is not a number of nodes: write 12, or general=12"),
        (("--nodes", "general=5"), "The number of nodes of batch is not known. Give --nodes batch=N"),
        (("--nodes", "5", "--now", NOON, "--to", NOON), "--to must be later than --from"),
        (("--nodes", "5", "--now", NOON, "--to", "2046-01-01T00:00:00Z"), "at most ten years apart"),
        (("--nodes", "5", "--now", "9999-12-31T23:00:00Z"), "is not within the years 1000 to 9000"),
        (("--nodes", "5", "--now", "0001-01-01T00:00:00Z"), "is not within the years 1000 to 9000"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(repository: Path, words: tuple[str, ...], told: str) -> None:
    done = headroom("--repo", str(repository), *words)
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.split())


def test_a_node_pool_that_is_not_there_is_named_before_those_without_a_number(repository: Path) -> None:
    done = headroom("--repo", str(repository), "--nodes", "gen=5")
    assert str(done.exception) == "--nodes gen=5: there is no NodePool gen"


def test_without_a_cluster_the_other_way_to_ask_is_named(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    done = headroom("--repo", str(repository))
    assert isinstance(done.exception, Invalid)
    assert done.exception.hint.endswith("or compute from the repository alone: --nodes N")


def test_budgets_in_local_time_over_years_are_compiled_again_as_often_as_they_run_out(tmp_path: Path) -> None:
    """From before the present month to three years on: Berlin's nine o'clock at every time of the year, in one row a day."""
    general = node_pool("general")
    general["metadata"]["annotations"] = {"headroom.dev/timezone": "Europe/Berlin"}
    general["spec"]["disruption"]["budgets"] = [{"nodes": "20%"}, OFFICE]
    (tmp_path / "pools.yaml").write_text(yaml.safe_dump(general))
    plain = node_pool("plain")
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump(plain))
    asked = ("--repo", str(tmp_path), "--nodes", "10", "--now", NOON, "--from", "2026-05-01T00:00:00Z")
    found = rows(*asked, "--to", "2029-05-01T00:00:00Z")
    zone = time_zone("Europe/Berlin")
    closed = [
        row for row in found if row["nodePool"] == "general" and row["reason"] == "Drifted" and row["allowed"] == 0
    ]
    opened = {datetime.fromisoformat(row["from"]).astimezone(zone).strftime("%a %H:%M") for row in closed}
    assert opened == {f"{day} 09:00" for day in ("Mon", "Tue", "Wed", "Thu", "Fri")}
    first, last = date(2026, 5, 1), date(2029, 5, 1)
    days = [first + timedelta(days=index) for index in range((last - first).days)]
    assert len(closed) == sum(day.weekday() < 5 for day in days)
    assert len({row["why"] for row in closed}) == 1
    for pool, reason in {(row["nodePool"], row["reason"]) for row in found}:
        own = [row for row in found if (row["nodePool"], row["reason"]) == (pool, reason)]
        assert [row["from"] for row in own] == ["2026-05-01T00:00:00Z", *(row["to"] for row in own[:-1])]
        assert own[-1]["to"] == "2029-05-01T00:00:00Z"
    assert len([row for row in found if row["nodePool"] == "plain"]) == 3
    text = headroom(*asked, "--to", "2028-05-01T00:00:00Z")
    assert text.exception is None


def test_why_names_what_was_written_and_not_what_it_was_compiled_into(repository: Path) -> None:
    general = node_pool("general")
    general["metadata"]["annotations"] = {
        "headroom.dev/timezone": "Europe/Berlin",
        "headroom.dev/allow-windows": "0 22 * * mon-fri for 8h\n0 2 * * sat for 4h Drifted",
    }
    general["spec"]["disruption"]["budgets"] = [
        {"nodes": "30%"},
        {"nodes": "10%", "schedule": "0 23 * * mon-fri", "duration": "2h"},
    ]
    batch = manifest(
        "karpenter.sh/v1",
        "NodePool",
        "batch",
        metadata={"annotations": {"headroom.dev/timezone": "Europe/Berlin"}},
        spec={"disruption": {"budgets": [OFFICE, {"nodes": "3"}]}},
    )
    (repository / "pools.yaml").write_text(yaml.safe_dump_all([general, batch]))
    asked = ("--repo", str(repository), "--nodes", "20")
    noon = {(row["nodePool"], row["reason"]): row["why"] for row in rows(*asked, "--now", NOON)}
    office = "budgets[0] binds: no node at all, for 8h from each '0 9 * * mon-fri' (Europe/Berlin)"
    assert noon["batch", "Drifted"] == office
    assert noon["batch", "Empty"] == "budgets[1] binds: 3 nodes at most"
    only = "headroom.dev/allow-windows binds: no node at all, outside of 0 22 * * mon-fri for 8h"
    assert noon["general", "Empty"] == f"{only} (Europe/Berlin)"
    assert noon["general", "Drifted"] == f"{only}; 0 2 * * sat for 4h (Europe/Berlin)"
    night = {row["why"] for row in rows(*asked, "--now", "2026-11-20T22:30:00Z") if row["nodePool"] == "general"}
    assert night == {"budgets[1] binds: 10% of 20 nodes is 2, for 2h from each '0 23 * * mon-fri' (Europe/Berlin)"}


def only_partial(repository: Path) -> None:
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "live"}, "spec": {"weight": 5}}
    (repository / "pools.yaml").write_text(yaml.safe_dump(body))


def test_partial_pools_that_cannot_be_told_about_are_named(repository: Path) -> None:
    words, told = ("--cluster", "embedded"), "NodePool/live: not in the cluster, and this document has no template"
    only_partial(repository)
    asked = ("--repo", str(repository), *words, "--now", NOON)
    done = headroom(*asked)
    assert done.exit_code == 0
    assert "NodePool/live is left out; see the finding." in done.stdout
    assert told in done.stdout
    assert "There is no NodePool to show." not in done.stdout
    (finding,) = json.loads(headroom(*asked, "--output", "json").stdout)["findings"]
    assert (finding["code"], finding["name"]) == ("pool-not-there", "live")
