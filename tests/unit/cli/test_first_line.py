"""The first line of a difference says what is lost, whatever the reason: the cases of `tests/cases/first-lines.yaml`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reconciler import comparison
from reconciler.cli import diff
from reconciler.cli.application import application
from reconciler.cluster.apply import InventoryParent, parent_manifest
from reconciler.model.buffers import ONE_SHOTS_KEY, OneShot, OneShotPlace
from reconciler.model.remembered import Inventory, records_of
from reconciler.report.difference.difference import Difference
from reconciler.wiring.posting import is_too_little
from tests.unit.cli.two_folders import NOW, Document, Folders, node

TOMORROW = "2026-11-23T15:41:00Z"
CASES = yaml.safe_load((Path(__file__).resolve().parents[2] / "cases" / "first-lines.yaml").read_text())


def machine(name: str, pool: str) -> list[Document]:
    """A node, its NodeClaim, and a pod that leaves no room there."""
    there = node(name, pool)
    there["metadata"]["labels"]["team"] = "red"
    labels, status = there["metadata"]["labels"], {**there["status"], "providerID": name, "nodeName": name}
    of = {
        "requirements": [],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
    }
    spec = {"containers": [{"name": "full", "resources": {"requests": {"cpu": "7900m"}}}], "nodeName": name}
    pod = {"metadata": {"name": name, "namespace": "default"}, "spec": spec | {"tolerations": [{"operator": "Exists"}]}}
    return [
        there,
        {"kind": "NodeClaim", "metadata": {"name": name, "labels": labels}, "spec": of, "status": status},
        {"kind": "Pod", **pod, "status": {"phase": "Running"}},
    ]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    objects = [item for index in range(4) for item in machine(f"general-{index}", "general")]
    objects += [item for index in range(4) for item in machine(f"static-{index}", "static")]
    kinds = {"nodes": "Node", "nodeclaims": "NodeClaim", "pods": "Pod"}
    return Folders(tmp_path, {name: [item for item in objects if item["kind"] == kind] for name, kind in kinds.items()})


def test_what_headroom_made_earlier_changes_no_sum(folders: Folders) -> None:
    """Two reports of one commit said $1,293.49 and $927.96, an hour apart."""
    files = CASES["files"]
    after = edited(files, {"web.yaml": {"replicas: 5": "replicas: 9"}})
    sums = folders.document(after, before=files)["changes"]["cost"]["over30Days"]
    for index in range(6):
        made, claim, _ = machine(f"made-{index}", "general")
        for side in (made, claim):
            side["metadata"]["labels"] = side["metadata"]["labels"] | {"headroom.dev/placeholder": "true"}
            side["metadata"]["annotations"] = {
                "headroom.dev/held": "true",
                "headroom.dev/holds": "1 of CapacityBuffer/shop/web",
            }
        folders.lists["nodes"].append(made)
        folders.lists["nodeclaims"].append(claim)
    later = folders.document(after, before=files)["changes"]["cost"]
    assert later["over30Days"] == sums
    settled = edited(files, {"hours.yaml": None, "office.yaml": None})
    grown = edited(settled, {"web.yaml": {"replicas: 5": "replicas: 9"}})
    at = {now: folders.document(grown, before=settled, now=now)["changes"]["cost"] for now in (NOW, TOMORROW)}
    for name in ("nodes", "nodeclaims"):  # all that headroom made is gone again
        folders.lists[name] = [item for item in folders.lists[name] if not item["metadata"]["name"].startswith("made")]
    bare = folders.document(grown, before=settled)["changes"]["cost"]
    assert at[NOW]["over30Days"] == at[TOMORROW]["over30Days"] == bare["over30Days"]
    cost = folders.document(edited(settled, {"web.yaml": None}), before=settled)["changes"]["cost"]
    for word in ("Before", "After"):
        assert cost[f"perHour{word}"] * 24 * 30 == pytest.approx(cost["over30Days"][word.lower()], abs=0.01)


def test_nodes_that_drift_are_priced_as_their_successors(folders: Folders) -> None:
    """Pinning a NodePool to a large type cost $253 by the report, and $1,050 once all nodes had drifted."""
    (small,) = folders.catalog
    large = {**small, "name": "m-32x", "resources": {"cpu": "32", "memory": "128Gi", "pods": "110"}}
    offer = {**small["offerings"][0], "Price": 1.6}
    folders.catalog = [small, {**large, "offerings": [offer]}]
    files = {"pool.yaml": CASES["files"]["pool.yaml"]}
    pinned = "[{key: node.kubernetes.io/instance-type, operator: In, values: [m-32x]}]"
    after = edited(files, {"pool.yaml": {"[{key: kubernetes.io/arch, operator: In, values: [amd64]}]": pinned}})
    done = folders.diff(after, before=files)
    line = done.stdout.splitlines()[1]
    assert (
        "4 of 4 nodes of NodePool general drift (requirements of node.kubernetes.io/instance-type), 2 at a time" in line
    )
    # Four nodes of $0.40 with 7.9 of 8 cores in use become one of $1.60. Full ones become two.
    assert "no change in cost over the coming 30 days" in line
    for pod in folders.lists["pods"]:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "8"
    assert "+$1,152.00 (+50%) over the coming 30 days" in folders.diff(after, before=files).stdout.splitlines()[1]


def edited(files: dict[str, str], edits: dict[str, Any]) -> dict[str, str]:
    found = dict(files)
    for name, edit in edits.items():
        if edit is None:
            del found[name]
        elif isinstance(edit, str):
            found[name] = edit
        else:
            for before, after in edit.items():
                assert before in found[name], (name, before)
                found[name] = found[name].replace(before, after, 1)
    return found


BELOW_A_BOUND = {
    "nothing": True,
    "everything is deleted": False,
    "a wider requirement": True,
    "more replicas": True,
    "fewer replicas": False,
    "a label": False,
    "a broken buffer": False,
    "more than a NodePool's limit": False,
    "handed to an autoscaler": False,
    "a smaller static pool": False,
}
"""Whether no comment is made where a comment has a bound: chunks that find no place cost nothing, and were below every bound."""
assert BELOW_A_BOUND.keys() <= CASES["cases"].keys()


@pytest.fixture
def differences(monkeypatch: pytest.MonkeyPatch) -> list[Difference]:
    """Those that were shown."""
    found: list[Difference] = []
    shown = diff.print_difference

    def caught(change: Difference, *rest: Any, **more: Any) -> None:
        found.append(change)
        shown(change, *rest, **more)

    monkeypatch.setattr(diff, "print_difference", caught)
    return found


@pytest.mark.parametrize("name", CASES["cases"])
def test_it_says_what_a_reviewer_must_know(folders: Folders, differences: list[Difference], name: str) -> None:
    case = CASES["cases"][name]
    files = CASES["files"]
    words: tuple[str, ...] = ()
    if "quota" in case:
        there = {"metadata": {"name": "small", "namespace": "shop"}, "spec": {"hard": case["quota"]}}
        folders.lists["resourcequotas"] = [
            {"apiVersion": "v1", "kind": "ResourceQuota", **there, "status": {"hard": case["quota"]}}
        ]
        words = ("--dialect", "ca")
    done = folders.diff(edited(files, case["change"]), *words, before=edited(files, case.get("base", {})))
    assert done.return_value in {0, 1}, done.output
    line = done.stdout.splitlines()[1]
    rest = line
    for part in case["says"]:
        assert str(part) in rest, line
        rest = rest.partition(str(part))[2]
    for word in case.get("unsaid", ()):
        assert word.lower() not in line.lower()
    assert "speaks against" not in done.stdout
    (change,) = differences
    assert BELOW_A_BOUND.get(name) in {None, is_too_little(change, 1_000.0)}
    assert not is_too_little(replace(change, unjudged=("a template",)), 1_000.0)


def test_sample_prices_are_called_so_wherever_they_stand(tmp_path: Path) -> None:
    """They looked like a cloud's. Then `diff` said that no prices are known, where `plan` had them."""
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        (folder / "pool.yaml").write_text(CASES["files"]["pool.yaml"])
        (folder / "shape.yaml").write_text(CASES["files"]["shape.yaml"])
    (after / "web.yaml").write_text(CASES["files"]["web.yaml"])
    words = ["diff", str(before), str(after), "--cluster", "embedded", "--output", "markdown"]
    text = CliRunner().invoke(application, words, standalone_mode=False).stdout
    assert (
        "More room: shop/web new (5 chunks); 1 more node now; 1 object added; +$109.46 over the coming 30 days at sample prices.**"
        in text
    )
    assert "> Sample prices, invented: no cloud charges them." in text
    plan = CliRunner().invoke(application, ["plan", "--repo", str(after), "--cluster", "embedded"]).stdout
    assert "over the coming 30 days $109.46" in plan
    assert re.findall(r"types?, \$0\.1520/h", plan) == re.findall(r"types?, \$0\.1520/h", text) != []


def test_each_of_several_clusters_has_a_report_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --path they were planned as one cluster, and one report was of both."""
    seen: list[float] = []

    def compared(*sides: Any, **options: Any) -> comparison.Comparison:
        made = compare(*sides, **options)
        seen.append(made.timings["plan"])
        return made

    compare = comparison.compare
    monkeypatch.setattr(comparison, "compare", compared)
    for side in ("before", "after"):
        for cluster in ("east", "west"):
            folder = tmp_path / side / "clusters" / cluster
            folder.mkdir(parents=True)
            for name in ("pool.yaml", "shape.yaml", "web.yaml"):
                (folder / name).write_text(CASES["files"][name])
    (tmp_path / "after" / "clusters" / "west" / "web.yaml").unlink()
    words = ["diff", str(tmp_path / "before"), str(tmp_path / "after"), "--cluster", "embedded", "--no-less-room"]
    timings = tmp_path / "timings.json"
    done = CliRunner().invoke(application, [*words, "--timings", str(timings)], standalone_mode=False)
    assert done.return_value == 3
    assert json.loads(timings.read_text())["stages"]["plan"] == pytest.approx(sum(seen), abs=1e-6)
    assert len(seen) == 2
    east, west = done.stdout.split("clusters/west:\n")
    assert east.startswith("clusters/east:\n")
    assert "No change in capacity" in east
    assert "Less room: shop/web removed (5 chunks)" in west
    titles = CliRunner().invoke(application, [*words, "--output", "markdown"], standalone_mode=False).stdout
    assert "## clusters/east: what differs" in titles
    assert "## clusters/west: what differs" in titles
    refused = CliRunner().invoke(application, [*words, "--output", "json"])
    assert refused.exit_code == 2
    assert "name the folder of one with --path" in refused.output


def test_all_of_it_is_on_one_page_that_the_comment_links(tmp_path: Path) -> None:
    """A comment says `… and 440 more`, and nothing said where these are."""
    names = [f"team-{index:03}" for index in range(70)]
    for side in ("before", "after"):
        (tmp_path / side).mkdir()
        for name in ("pool.yaml", "shape.yaml"):
            (tmp_path / side / name).write_text(CASES["files"][name].replace('"400"', '"90000"'))
    more = [CASES["files"]["web.yaml"].replace("name: web, n", f"name: {name}, n") for name in names]
    sized = [text.replace("replicas: 5", f"replicas: {index + 1}") for index, text in enumerate(more)]
    (tmp_path / "after" / "many.yaml").write_text("---\n".join(sized))
    page = tmp_path / "report.html"
    words = ["diff", str(tmp_path / "before"), str(tmp_path / "after"), "--cluster", "embedded", "--page", str(page)]
    comment = CliRunner().invoke(application, [*words, "--output", "markdown"], standalone_mode=False).stdout
    assert "… and 10 more." in comment
    assert all(f"CapacityBuffer/shop/{name}<" in page.read_text() for name in names)
    tables = re.sub(r"<svg.*?</svg>", "", page.read_text(), flags=re.DOTALL)
    assert "… and" not in tables
    refused = CliRunner().invoke(application, [*words[:-1], str(tmp_path / "nowhere" / "report.html")])
    assert "report.html: cannot be written (No such file or directory)" in str(refused.exception)


def test_what_drifts_and_the_errors_of_the_base_are_listed(folders: Folders) -> None:
    files = edited(CASES["files"], {"web.yaml": {"replicas: 5": "replicas: five"}})
    after = edited(files, {"pool.yaml": {"team: red": "team: blue"}})
    for output in ("text", "markdown", "html"):
        shown = folders.diff(after, f"--output={output}", before=files).stdout
        assert "general-0, general-1, general-2, general-3" in shown
        assert "Errors that " in shown
        assert "spec.replicas must be a whole number" in shown
        assert "▇" not in shown, "nothing is dearer or cheaper"
    dearer = folders.diff(
        edited(CASES["files"], {"web.yaml": {"replicas: 5": "replicas: 50"}}), "--output=html", before=files
    )
    assert 'class="words dearer"' in dearer.stdout


def test_a_one_shot_buffer_that_was_filled_says_why_another_size_changes_nothing(folders: Folders) -> None:
    once = "namespace: shop, annotations: {headroom.dev/one-shot: 'true'}}"
    files = {name: CASES["files"][name] for name in ("pool.yaml", "shape.yaml", "web.yaml")}
    before = edited(files, {"web.yaml": {"namespace: shop}": once, "replicas: 5": "replicas: 4"}})
    after = edited(before, {"web.yaml": {"replicas: 4": "replicas: 10"}})
    made, claim, _ = machine("made", "general")
    made["metadata"]["annotations"] = {
        "headroom.dev/held": "true",
        "headroom.dev/holds": "4 of CapacityBuffer/shop/web",
    }
    folders.lists["nodes"].append(made)
    folders.lists["nodeclaims"].append(claim)
    buffer = yaml.safe_load(before["web.yaml"])
    buffer["metadata"] |= {"uid": "u1", "labels": {"applyset.kubernetes.io/part-of": InventoryParent().id}}
    folders.lists["capacitybuffers"] = [buffer]
    assert "More room: shop/web 4 → 10 chunks" in folders.diff(after, before=before).stdout
    filled = OneShot(filled="2026-11-21T08:00:00Z").on({"made": OneShotPlace(4, 8)})
    memory = records_of(ONE_SHOTS_KEY, {"u1": filled})
    parent = parent_manifest(InventoryParent(), Inventory(records=memory, namespaces=("shop",)))
    folders.lists["configmaps"] = [dict(parent)]
    why = "CapacityBuffer/shop/web has been filled once and is not filled again, so that another size changes nothing"
    for output in ("text", "markdown", "html"):
        shown = folders.diff(after, f"--output={output}", before=before).stdout
        assert why in shown
        assert "no change in cost" in shown
        assert "More room" not in shown
