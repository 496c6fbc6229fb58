"""Plans that are recorded: of the example repository and of the manifests in tests/cases, as `headroom plan --output json` has
them. Used by answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from click.testing import CliRunner

from reconciler.cli.application import application
from tests.examples import unplaceable
from tests.fakes.embedded import node_pool
from tests.manifests import snapshot_in
from tests.perf.answer import Answer, Questions, of_plan
from tests.unit.cli.test_budget_cases import node_and_claim, without_count

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"
NOW = "2026-11-21T08:00:00Z"
OPTIMAL = ("--placement-mode", "optimal")
PENDING = ("--include-pending",)

Document = Mapping[str, Any]


def examples() -> Questions:
    for cluster in ("production", "staging"):
        where = ("--path", f"clusters/{cluster}", "--cluster", f"snapshot:snapshots/{cluster}")
        for name, words in {"": (), " optimal": OPTIMAL, " pending": PENDING}.items():
            yield f"{cluster}{name}", partial(_planned, ROOT / "examples-repo", (*where, *words))


def unplaceable_pods() -> Questions:
    for name, case in unplaceable.cases().items():
        write = partial(unplaceable.write_snapshot, case)
        yield name, partial(_planned_in, {}, write, NOW, PENDING)


def documents() -> Questions:
    """Plans of the cases that are manifests: those on budgets and schedules, and each of headroom's own kinds."""
    for case in _loaded("budget_examples"):
        yield f"budget_examples/{case['name']}", _of_repository(case["document"])
    for case in _loaded("budget_lints"):
        budgets = case.get("budgets", [])
        many = [{"nodes": str(number)} for number in range(budgets)] if isinstance(budgets, int) else budgets
        document = _pool_with(many)
        document["metadata"]["annotations"] = case.get("annotations", {})
        yield f"budget_lints/{case['name']}", _of_repository(yaml.safe_dump(document))
    for case in _loaded("schedules"):
        yield f"schedules/{case['name']}", _of_repository(yaml.safe_dump(_producer(case["spec"])), case["now"])
    for file in ("own_kinds", "schedule_of_the_proposal", "schedule_with_ranges"):
        yield file, _of_repository((CASES / f"{file}.yaml").read_text(encoding="utf-8"))


def budgets() -> Questions:
    """tests/cases/budgets.yaml: what the budgets of pools allow on a cluster with as many nodes as the case says."""
    for case in _loaded("budgets"):
        given, pools = case["input"], _pools_of(case["input"])
        lists: dict[str, list[Document]] = {"nodepools": [], "nodes": [], "nodeclaims": []}
        for item in pools:
            lists["nodepools"].append(_pool_with(item["budgets"], item["name"]))
            for group, nodes in enumerate(item["nodes"]):
                for index in range(nodes["count"]):
                    name = f"{item['name']}-{group}-{index}"
                    node, claim = node_and_claim(name, item["name"], **without_count(nodes))
                    lists["nodes"].append(node)
                    lists["nodeclaims"].append(claim)
        write = partial(_write_lists, lists)
        yield case["name"], partial(_planned_in, {}, write, given.get("now", NOW), ())


def _planned(folder: Path, words: Sequence[str], now: str = NOW) -> Answer:
    """In that folder, so that no answer knows where it was found."""
    with chdir(folder):
        done = CliRunner().invoke(application, ["plan", *words, "--now", now, "--output", "json"])
    if done.exit_code not in {0, 1} or not done.stdout:
        return Answer(f"exit code {done.exit_code}", done.stderr)
    return of_plan(json.loads(done.stdout))


def _planned_in(
    repository: Mapping[str, str], write_snapshot: Callable[[Path], None], now: str, words: Sequence[str]
) -> Answer:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "repository").mkdir()
        for file, text in repository.items():
            (folder / "repository" / file).write_text(text, encoding="utf-8")
        write_snapshot(folder / "snapshot")
        return _planned(folder, ("--repo", "repository", "--cluster", "snapshot:snapshot", *words), now)


def _of_repository(text: str, now: str = NOW) -> Callable[[], Answer]:
    return partial(_planned_in, {"case.yaml": text}, partial(_write_lists, {}), now, ())


def _write_lists(lists: Mapping[str, Iterable[Document]], folder: Path) -> None:
    snapshot_in(folder, lists, [])


def _loaded(file: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((CASES / f"{file}.yaml").read_text(encoding="utf-8"))
    return found


def _pool_with(budgets: Sequence[Document], name: str = "general") -> dict[str, Any]:
    document = node_pool(name, consolidate_after="1m")
    document["spec"]["disruption"]["budgets"] = budgets
    return dict(document)


def _producer(schedule: Document) -> Document:
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "metadata": {"name": "hours", "namespace": "shop"},
        "spec": {"schedule": schedule},
    }


def _pools_of(given: Document) -> list[dict[str, Any]]:
    """The case's pools, each with its groups of nodes."""
    if "nodePools" in given:
        return [
            {**item, "nodes": [{"count": item["nodes"]}] if isinstance(item["nodes"], int) else item["nodes"]}
            for item in given["nodePools"]
        ]
    budgets = given.get("budgets")
    if budgets is None:
        budgets = [{"nodes": "0"} | {key: given[key] for key in ("schedule", "duration") if key in given}]
    return [{"name": "pool", "budgets": budgets, "nodes": [{"count": given.get("numNodes", 1)}]}]
