"""What Karpenter's own code says about budgets, windows and nodes, asked of `headroom budgets` as a person would."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from reconciler.cli.application import application
from reconciler.model.timelines import UNBOUNDED
from tests.case_files import Case, cases_in, for_each
from tests.fakes.embedded import Sandbox, node_claim, node_pool
from tests.manifests import snapshot_in

Document = dict[str, Any]

FILE = "budgets.yaml"
RUNS = cases_in(FILE, "disruption_run")


def asked(*words: str) -> list[Document]:
    """The rows that the command prints."""
    done = CliRunner().invoke(application, ["budgets", *words, "--output", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows: list[Document] = json.loads(done.stdout)["budgets"]
    return rows


def allowed(rows: Iterable[Document], pool: str = "pool") -> dict[str, int]:
    return {
        row["reason"]: UNBOUNDED if row["allowed"] is None else row["allowed"]
        for row in rows
        if row["nodePool"] == pool
    }


def pool_document(budgets: list[Document], name: str = "pool") -> Document:
    document = node_pool(name, consolidate_after="0s")
    document["spec"]["disruption"]["budgets"] = budgets
    return document


def repository(folder: Path, *documents: Document) -> str:
    (folder / "pools.yaml").write_text(yaml.safe_dump_all(documents))
    return str(folder)


def snapshot(folder: Path, **lists: list[Document]) -> str:
    """A captured cluster; nothing of it is in a repository."""
    (folder / "empty").mkdir()
    return snapshot_in(folder / "cluster", lists)


@for_each(cases_in(FILE, "allowed"))
def test_what_a_pools_budgets_allow(case: Case, tmp_path: Path) -> None:
    given, expected = case["input"], case["expect"]
    folder = repository(tmp_path, pool_document(given["budgets"]))
    rows = asked("--repo", folder, "--nodes", str(given["numNodes"]), "--now", given["now"])
    assert allowed(rows) == expected["allowed"]
    if expected["error"]:
        assert all("nothing may go, for any reason" in row["why"] for row in rows)


@for_each(cases_in(FILE, "active"))
def test_when_a_window_is_open(case: Case, tmp_path: Path) -> None:
    """A budget of none says when its window is open. Asked of a cluster, which may hold what its API server would refuse."""
    given, expected = case["input"], case["expect"]
    budget = {"nodes": "0"} | {key: given[key] for key in ("schedule", "duration") if key in given}
    cluster = snapshot(tmp_path, nodepools=[pool_document([budget])])
    rows = asked("--repo", str(tmp_path / "empty"), "--cluster", cluster, "--now", given["now"])
    closed = set(allowed(rows).values()) == {0}
    if expected.get("error"):
        assert closed
        assert all("cannot be evaluated" in row["why"] for row in rows)
    else:
        assert closed == expected["active"]
        assert not any("cannot be evaluated" in row["why"] for row in rows)


@for_each(cases_in(FILE, "mapping"))
def test_which_nodes_use_a_budget_up(case: Case, tmp_path: Path) -> None:
    given = case["input"]
    pools = [pool_document(pool["budgets"], pool["name"]) for pool in given["nodePools"]]
    nodes, claims = [], []
    for pool in given["nodePools"]:
        for group, item in enumerate(pool["nodes"]):
            for index in range(item["count"]):
                node, claim = node_and_claim(f"{pool['name']}-{group}-{index}", pool["name"], **without_count(item))
                nodes.append(node)
                claims.append(claim)
    nodes += [node_and_claim(f"unmanaged-{index}", "pool")[0] for index in range(given.get("unmanagedNodes", 0))]
    cluster = snapshot(tmp_path, nodepools=pools, nodes=nodes, nodeclaims=claims)
    rows = asked("--repo", str(tmp_path / "empty"), "--cluster", cluster, "--now", given["now"])
    assert {pool: allowed(rows, pool) for pool in case["expect"]["remaining"]} == case["expect"]["remaining"]


def without_count(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "count"}


def node_and_claim(
    name: str, pool: str, *, managed: bool = True, initialized: bool = True, ready: bool = True, deleting: bool = False
) -> tuple[Document, Document]:
    labels = {"karpenter.sh/nodepool": pool} | ({"karpenter.sh/initialized": "true"} if initialized else {})
    node = {
        "metadata": {"name": name, "labels": labels if managed else {}},
        "spec": {"providerID": f"test://{name}"},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }
    claim = node_claim(f"claim-{name}", "m-2x", pool=pool)
    claim["status"] = {"nodeName": name, "providerID": f"test://{name}"}
    if deleting:
        claim["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    return node, claim


@for_each(RUNS)
def test_what_karpenter_took_in_one_go_is_what_is_allowed(case: Case, tmp_path: Path) -> None:
    pools = case["input"]["nodePools"]
    folder = repository(tmp_path, *(pool_document(pool["budgets"], pool["name"]) for pool in pools))
    counts = [word for pool in pools for word in ("--nodes", f"{pool['name']}={pool['nodes']}")]
    rows = asked("--repo", folder, *counts)
    left = {pool["name"]: allowed(rows, pool["name"])[case["input"]["method"]] for pool in pools}
    taken = {pool["name"]: min(left[pool["name"]], pool["candidates"]) for pool in pools}
    assert taken == case["expect"]["disrupted"]
    assert left == case["expect"].get("allowed", left)


@for_each([case for case in RUNS if case["input"]["method"] == "Empty"])
def test_the_embedded_cluster_takes_as_many_empty_nodes_at_once(case: Case) -> None:
    sandbox = Sandbox()
    for pool in case["input"]["nodePools"]:
        document = pool_document(pool["budgets"], pool["name"])
        sandbox.cluster.apply(document | {"spec": _never_consolidates(document["spec"])})
        for index in range(pool["nodes"]):
            sandbox.cluster.apply(node_claim(f"{pool['name']}-node-{index}", "m-2x", pool=pool["name"]))
    sandbox.wait(10)
    for pool in case["input"]["nodePools"]:
        sandbox.cluster.apply(pool_document(pool["budgets"], pool["name"]))
    view = sandbox.wait(0.5)
    going = {
        pool["name"]: sum(
            claim.deleting for claim in view.node_claims if claim.label("karpenter.sh/nodepool") == pool["name"]
        )
        for pool in case["input"]["nodePools"]
    }
    assert going == case["expect"]["disrupted"]


def _never_consolidates(spec: Document) -> Document:
    return spec | {"disruption": {**spec["disruption"], "consolidateAfter": "Never"}}


def test_every_case_is_run() -> None:
    assert {case["kind"] for case in cases_in(FILE)} == {"allowed", "active", "mapping", "disruption_run"}
