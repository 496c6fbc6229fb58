"""The first line of a difference says what is lost, whatever the reason: the cases of `tests/cases/first-lines.yaml`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from reconciler import comparison
from reconciler.cli import diff
from reconciler.cluster.apply import InventoryParent, parent_manifest
from reconciler.model.buffers import ONE_SHOTS_KEY, OneShot, OneShotPlace
from reconciler.model.remembered import Inventory, records_of
from reconciler.report.difference.difference import Difference
from reconciler.wiring.posting import is_too_little
from tests import manifests
from tests.builders import manifest
from tests.fakes.embedded import NODE_CLASS
from tests.unit.cli.two_folders import NOW, Document, Folders, node

SAMPLES = ("--cluster=embedded",)
"""Of that cluster prices are known, though nobody charges them."""
TOMORROW = "2026-11-23T15:41:00Z"
CASES = yaml.safe_load((Path(__file__).resolve().parents[2] / "cases" / "first-lines.yaml").read_text())


def machine(name: str, pool: str) -> dict[str, Document]:
    """A node, its NodeClaim, and a pod that leaves no room there, by their plurals."""
    there = node(name, pool)
    there["metadata"]["labels"]["team"] = "red"
    labels, status = there["metadata"]["labels"], {**there["status"], "providerID": name, "nodeName": name}
    of = {"requirements": [], "nodeClassRef": NODE_CLASS}
    claim = manifest("karpenter.sh/v1", "NodeClaim", name, metadata={"labels": labels}, spec=of, status=status)
    full = {"name": "full", "resources": {"requests": {"cpu": "7900m"}}}
    spec = {"containers": [full], "nodeName": name, "tolerations": [{"operator": "Exists"}]}
    pod = manifest("v1", "Pod", name, "default", spec=spec, status={"phase": "Running"})
    return {"nodes": there, "nodeclaims": claim, "pods": pod}


def hold(folders: Folders, name: str, chunks: int) -> None:
    """One more machine, which headroom made: it holds chunks of the buffer and has no pod."""
    made = machine(name, "general")
    for plural in ("nodes", "nodeclaims"):
        holds = {"headroom.dev/held": "true", "headroom.dev/holds": f"{chunks} of CapacityBuffer/shop/web"}
        made[plural]["metadata"]["annotations"] = holds
        made[plural]["metadata"]["labels"]["headroom.dev/placeholder"] = "true"
        folders.lists[plural].append(made[plural])


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    machines = [machine(f"{pool}-{index}", pool) for pool in ("general", "static") for index in range(4)]
    return Folders(tmp_path, {plural: [each[plural] for each in machines] for plural in machines[0]})


def test_what_headroom_made_earlier_changes_no_sum(folders: Folders) -> None:
    """Two reports of one commit said $1,293.49 and $927.96, an hour apart."""
    files = CASES["files"]
    after = edited(files, {"web.yaml": {"replicas: 5": "replicas: 9"}})
    sums = folders.document(after, before=files)["changes"]["cost"]["over30Days"]
    for index in range(6):
        hold(folders, f"made-{index}", 1)
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
    # What no budget lets go within the 30 days is paid for as it is.
    closed = edited(after, {"pool.yaml": {'nodes: "2"': 'nodes: "0"'}})
    line = folders.diff(closed, before=files).stdout.splitlines()[1]
    assert "none within 30 days; 1 object changed; no change in cost over the coming 30 days" in line


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
        hard = {"hard": case["quota"]}
        folders.lists["resourcequotas"] = [manifest("v1", "ResourceQuota", "small", "shop", spec=hard, status=hard)]
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


def test_nodes_whose_price_is_unknown_are_no_unchanged_cost(folders: Folders, differences: list[Difference]) -> None:
    """`1 more node now; no change in cost over the coming 30 days` stood there, and below a bound no comment was made."""
    (kind,) = folders.catalog
    folders.catalog = [{**kind, "offerings": [{**each, "Price": None} for each in kind["offerings"]]}]
    files = {name: CASES["files"][name] for name in ("pool.yaml", "shape.yaml", "web.yaml")}
    done = folders.diff(files, before=edited(files, {"web.yaml": None}))
    said = "1 more node now; 1 object added; cost not known over the coming 30 days: 1 more node without a known price."
    assert said in done.stdout.splitlines()[1]
    assert "$0.00 over 30 days (no change, not counting 1 more node without a known price)" in done.stdout
    (change,) = differences
    assert not is_too_little(change, 1_000.0)


def test_sample_prices_are_called_so_wherever_they_stand(folders: Folders) -> None:
    """They looked like a cloud's. Then `diff` said that no prices are known, where `plan` had them."""
    after = {name: CASES["files"][name] for name in ("pool.yaml", "shape.yaml", "web.yaml")}
    text = folders.diff(after, *SAMPLES, "--output=markdown", before=edited(after, {"web.yaml": None})).stdout
    assert (
        "More room: shop/web new (5 chunks); 1 more node now; 1 object added; +$109.46 over the coming 30 days at sample prices.**"
        in text
    )
    assert "> Sample prices, invented: no cloud charges them." in text
    plan = folders.plan_text(after, *SAMPLES)
    assert "over the coming 30 days $109.46" in plan
    assert re.findall(r"types?, \$0\.1520/h", plan) == re.findall(r"types?, \$0\.1520/h", text) != []


def test_each_of_several_clusters_has_a_report_of_its_own(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --path they were planned as one cluster, and one report was of both."""
    seen: list[float] = []

    def compared(*sides: Any, **options: Any) -> comparison.Comparison:
        made = compare(*sides, **options)
        seen.append(made.timings["plan"])
        return made

    compare = comparison.compare
    monkeypatch.setattr(comparison, "compare", compared)
    own = {name: CASES["files"][name] for name in ("pool.yaml", "shape.yaml", "web.yaml")}
    before = {f"clusters/{cluster}/{name}": text for cluster in ("east", "west") for name, text in own.items()}
    after, words = edited(before, {"clusters/west/web.yaml": None}), (*SAMPLES, "--no-less-room")
    timings = tmp_path / "timings.json"
    done = folders.diff(after, *words, f"--timings={timings}", before=before)
    assert done.return_value == 3
    assert json.loads(timings.read_text())["stages"]["plan"] == pytest.approx(sum(seen), abs=1e-6)
    assert len(seen) == 2
    east, west = done.stdout.split("clusters/west:\n")
    assert east.startswith("clusters/east:\n")
    assert "No change in capacity" in east
    assert "Less room: shop/web removed (5 chunks)" in west
    titles = folders.diff(after, *words, "--output=markdown", before=before).stdout
    assert "## clusters/east: what differs" in titles
    assert "## clusters/west: what differs" in titles
    refused = folders.diff(after, *words, "--output=json", before=before)
    assert isinstance(refused.exception, click.UsageError)
    assert "name the folder of one with --path" in str(refused.exception)


def test_all_of_it_is_on_one_page_that_the_comment_links(folders: Folders, tmp_path: Path) -> None:
    """A comment says `… and 440 more`, and nothing said where these are."""
    names = [f"team-{index:03}" for index in range(70)]
    before = {name: CASES["files"][name].replace('"400"', '"90000"') for name in ("pool.yaml", "shape.yaml")}
    many = (manifests.buffer(name, f"replicas: {index + 1}") for index, name in enumerate(names))
    after, page = {**before, "many.yaml": "".join(many)}, tmp_path / "report.html"
    comment = folders.diff(after, *SAMPLES, f"--page={page}", "--output=markdown", before=before).stdout
    assert "… and 10 more." in comment
    assert all(f"CapacityBuffer/shop/{name}<" in page.read_text() for name in names)
    tables = re.sub(r"<svg.*?</svg>", "", page.read_text(), flags=re.DOTALL)
    assert "… and" not in tables
    refused = folders.diff(after, *SAMPLES, f"--page={tmp_path / 'nowhere' / 'report.html'}", before=before)
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
    hold(folders, "made", 4)
    folders.lists["capacitybuffers"] = [manifests.applied(before["web.yaml"])]
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
