"""What `headroom diff` says of whether demands are served: headline, verdict, bounds and cost agree, whoever keeps the capacity."""

from __future__ import annotations

import pytest

from tests import manifests
from tests.builders import manifest
from tests.manifests import schedule
from tests.unit.cli.two_folders import POOL, REQUEST, SHAPE, START, Document, Folders, buffer, node


def served_by_karpenter(name: str) -> Document:
    """A CapacityBuffer of the cluster with fields of Karpenter's in its status."""
    status = {"fieldsV1": {"f:status": {"f:replicas": {}}}, "subresource": "status"}
    return manifest(
        "autoscaling.x-k8s.io/v1beta1",
        "CapacityBuffer",
        name,
        "shop",
        metadata={"managedFields": [{"manager": "karpenter", "operation": "Update", **status}]},
        spec={"podTemplateRef": {"name": "web"}, "replicas": 0},
        status={"replicas": 0},
    )


def test_a_buffer_that_becomes_not_ready_loses_its_place(folders: Folders) -> None:
    """It passed the bound, and nothing was said against merging."""
    done = folders.diff(START | {"web.yaml": buffer(template="wbe")}, "--no-unplaced")
    assert done.return_value == 3, done.output
    assert "CapacityBuffer/shop/web: not ready from" in done.stderr
    assert "so that 20 chunks lose their place: PodTemplate/shop/wbe does not exist" in done.stderr
    assert "Less room: shop/web 20 → 0 chunks (PodTemplate/shop/wbe does not exist); 1 new" in done.stdout
    assert "Do not merge as it is." in done.stdout
    free = folders.diff(START | {"web.yaml": buffer(template="wbe")}).stdout
    assert "Look at what has less room or is not ready before you merge." in free


def test_a_new_request_without_its_template_is_not_ready_and_says_why(folders: Folders) -> None:
    """It had no reason, and the report said that nothing speaks against merging."""
    after = START | {"train.yaml": REQUEST.replace("name: web}, count", "name: gone}, count")}
    text = folders.diff(after).stdout
    assert "ProvisioningRequest/shop/train: absent → not ready" in text
    assert "PodTemplate/shop/gone does not exist" in text
    assert "shop/train is not ready" in text.splitlines()[1]
    assert text.splitlines()[-1] == "Look at what is not ready before you merge."
    assert folders.diff(after, "--no-unplaced").return_value == 3


def test_what_was_not_ready_before_is_nobodys_news(folders: Folders) -> None:
    before = START | {"web.yaml": buffer(template="wbe")}
    done = folders.diff(before | {"web.yaml": buffer(30, template="wbe")}, "--no-unplaced", before=before)
    assert done.return_value == 1, done.output
    assert "room" not in done.stdout.splitlines()[1]
    assert "before you merge" not in done.stdout


def test_a_request_that_does_not_fit_as_a_whole_names_the_limit(folders: Folders) -> None:
    """It named the taint of another NodePool."""
    gpu = POOL.replace("general", "gpu").replace(
        "    spec:", "    spec:\n      taints: [{key: gpu, effect: NoSchedule}]", 1
    )
    before = {"pool.yaml": POOL.replace("400", "40"), "gpu.yaml": gpu, "shape.yaml": SHAPE}
    (row,) = folders.document(before | {"train.yaml": REQUEST}, before=before)["changes"]["demands"]
    why = "NodePool general is at its cpu limit of 40, once 35 of its 60 pods have a place"
    assert row["service"]["why"] == why
    assert [item["reason"] for item in row["unplacedReasons"]] == [
        "NodePool limit",
        "NodePool taints",
        "all or nothing",
    ]
    head = folders.document(before | {"train.yaml": REQUEST}, before=before)["head"]["demands"][0]
    assert next(item for item in head["conditions"] if item["type"] == "Provisioned")["message"] == why


@pytest.mark.parametrize(("kept_by", "source"), [("native", "an autoscaler"), ("balloon", "balloon pods")])
def test_capacity_that_somebody_else_makes_is_paid_for_all_the_same(
    folders: Folders, kept_by: str, source: str
) -> None:
    """It was a saving of all that the buffer costs."""
    after = START | {"web.yaml": buffer(fulfilment=kept_by)}
    changes = folders.document(after)["changes"]
    over = changes["cost"]["over30Days"]
    assert (over["before"], over["delta"]) == (over["after"], 0) != (0, 0)
    assert changes["cost"]["perHourBefore"] == changes["cost"]["perHourAfter"]
    (row,) = changes["demands"]
    assert (row["before"], row["after"], row["unplaced"], row["service"]["served"]) == (20, 20, 0, 20)
    text = folders.diff(START | {"web.yaml": buffer(30, fulfilment=kept_by)}).stdout
    assert f"shop/web kept by {source}" in text.splitlines()[1]
    assert f"kept by {source} instead of headroom" in text
    assert f"kept by {source}, whose nodes are priced as headroom's would be" in text
    assert ", made by the autoscaler" in text


def test_the_way_back_names_both(folders: Folders) -> None:
    text = folders.diff(START, before=START | {"web.yaml": buffer(fulfilment="balloon")}).stdout
    assert "kept by headroom instead of balloon pods" in text
    assert "shop/web kept by headroom" in text.splitlines()[1]


def test_balloon_pods_that_find_no_node_are_found_by_the_bound(folders: Folders) -> None:
    """The headline told of them; the bound was kept."""
    after = {**START, "pool.yaml": POOL.replace("400", "16"), "web.yaml": buffer(fulfilment="balloon")}
    done = folders.diff(after, "--no-unplaced")
    assert done.return_value == 3, done.output
    assert (
        "Less room: shop/web 20 → 14 chunks (NodePool general is at its cpu limit of 16)" in done.stdout.splitlines()[1]
    )
    assert "CapacityBuffer/shop/web: 6 chunks without a place from" in done.stderr
    assert folders.diff(START | {"web.yaml": buffer(fulfilment="balloon")}, "--no-unplaced").return_value == 1


def test_an_autoscaler_that_nothing_shows_cannot_be_relied_on(folders: Folders) -> None:
    after = START | {"web.yaml": buffer(fulfilment="native")}
    done = folders.diff(after, "--no-unplaced")
    assert done.return_value == 3, done.output
    assert "whether 20 chunks have a place is unknown: nothing in the cluster shows that an autoscaler" in done.stderr
    assert "20 chunks left to an autoscaler that nothing in the cluster shows" in done.stdout.splitlines()[1]
    assert "First merge a small buffer that is native from the start" in done.stderr
    assert "Look at what is left to an autoscaler before you merge." in folders.diff(after).stdout
    folders.lists["capacitybuffers"] = [served_by_karpenter("other")]
    told = folders.diff(after, "--no-unplaced")
    assert told.return_value == 1, told.output
    assert "shop/web kept by Karpenter" in told.stdout.splitlines()[1]


def test_the_first_buffer_that_is_native_from_the_start_keeps_the_bound(folders: Folders) -> None:
    """It could never be merged, since only a buffer in the cluster shows that an autoscaler serves one."""
    before = {"pool.yaml": POOL, "shape.yaml": SHAPE, "web.yaml": ""}
    done = folders.diff(START | {"web.yaml": buffer(fulfilment="native")}, "--no-unplaced", before=before)
    assert done.return_value == 1, done.output
    assert "20 chunks left to an autoscaler that nothing in the cluster shows" in done.stdout.splitlines()[1]
    assert done.stdout.splitlines()[-1] == "Look at what is left to an autoscaler before you merge."
    # Of one that grows as it is handed over, what headroom keeps at present counts.
    done = folders.diff(START | {"web.yaml": buffer(30, fulfilment="native")}, "--no-unplaced")
    assert done.return_value == 3, done.output
    assert "whether 20 chunks have a place is unknown" in done.stderr


def test_the_cost_of_nodes_whose_template_fails_is_that_of_a_mended_one(folders: Folders) -> None:
    """It told of fewer nodes, of more nodes and of a higher cost, all from the same instant on."""
    template = "{{ nosuch.thing }}\n"
    after = START | {"web.yaml": buffer(40)}
    (folders.root / "after" / "templates").mkdir(parents=True)
    (folders.root / "after" / "templates" / "nodeclaim.yaml.j2").write_text(template)
    text = folders.diff(after).stdout
    headline = text.splitlines()[1]
    assert (
        "20 chunks lose their place (shop/web 20); 20 new chunks find no place (shop/web 20); 1 new error; 3 fewer nodes now;"
        in headline
    )
    assert "more from" not in headline
    assert headline.endswith(" over the coming 30 days once the templates render.")
    assert "nodes whose template fails count in the 30 days as if it were mended" in text


def test_nodes_that_others_stand_in_for_are_no_mere_growth(folders: Folders) -> None:
    """Large nodes in place of small ones were told of by their number alone."""
    assert "1 more node now; " in folders.diff(START | {"web.yaml": buffer(28)}).stdout.splitlines()[1]
    spare = POOL.replace("name: general", "name: spare").replace("limits", "weight: 50\n  limits")
    text = folders.diff(START | {"web.yaml": buffer(28), "spare.yaml": spare}).stdout
    assert "1 more node now (4 new, 3 no longer needed); " in text.splitlines()[1]


def test_balloon_pods_have_the_room_that_is_free(folders: Folders) -> None:
    """All of them were without a place in a plan, however much room there was."""
    folders.lists["nodes"] = [node("a"), node("b")]
    plan = folders.plan(START | {"web.yaml": buffer(fulfilment="balloon")})
    (row,) = plan["demands"]
    assert (row["onExisting"], row["onNew"], row["unplaced"]) == (16, 0, 4)
    assert row["service"]["by"] == "balloon pods"
    reason = row["unplacedReasons"][0]
    assert (reason["count"], reason["example"]) == (4, "4 balloon pods wait for a node")
    provisioning = next(item for item in row["conditions"] if item["type"] == "Provisioning")
    assert provisioning["message"] == (
        "of 20 chunks, 16 with room for balloon pods that do not run yet, 4 without a place"
    )
    assert plan["nodeClaims"]["create"] == []


def test_a_request_that_is_left_to_another_is_not_called_not_ready(folders: Folders) -> None:
    left = REQUEST.replace("atomic-scale-up", "check-capacity").replace(
        "podSets", "parameters: {processorInstance: blue}\n  podSets"
    )
    text = folders.plan_text(START | {"train.yaml": left})
    assert "  ProvisioningRequest/shop/train: left to another" in text
    assert "      it is for the Cluster Autoscaler of instance blue, so headroom stands down\n" in text
    done = folders.diff(START | {"train.yaml": left}, "--no-unplaced")
    assert done.return_value == 1, done.output
    assert "ProvisioningRequest/shop/train: absent → left to another" in done.stdout
    assert "not ready" not in done.stdout


def test_a_request_is_paid_for_once(folders: Folders) -> None:
    """It had a price for one replica all the time."""
    text = folders.diff(START | {"train.yaml": REQUEST}).stdout
    (line,) = [line for line in text.splitlines() if line.startswith("  ProvisioningRequest/shop/train: $")]
    assert line.endswith("; once, while its capacity is booked; $3.43 an hour for as long as its pods run")
    assert ", and $3.43 an hour while shop/train runs" in text.splitlines()[1]
    larger = SHAPE.replace("memory: 1Gi", "memory: 8Gi")
    both = folders.diff(START | {"train.yaml": REQUEST, "shape.yaml": larger}, before=START | {"train.yaml": REQUEST})
    assert both.stdout.count("how long their pods run after that cannot be foreseen") == 1, (
        "whatever it costs on each side"
    )


def test_one_is_allowed(folders: Folders) -> None:
    done = folders.diff(START | {"web.yaml": buffer(60)}, "--max-new-nodes=1")
    assert "up to 6 new nodes once the cluster has settled; 1 is allowed" in done.stderr


def test_chunks_without_a_place_are_those_of_one_instant(folders: Folders) -> None:
    """Those of different hours were added up, and said to be so from the first of them on."""
    after = {"pool.yaml": POOL.replace("400", "16"), "shape.yaml": SHAPE, "web.yaml": buffer(0)}
    for name, count, start, end in (("early", 17, 13, 14), ("late", 20, 15, 16)):
        timed = schedule(name, count, f"hours: {start}", f"hours: {end}")
        after[f"{name}.yaml"] = timed + manifests.buffer(name, replicas_from=name)
    before = {**START, "web.yaml": buffer(0)}
    lines = folders.diff(after, before=before).stdout.splitlines()
    words = "6 new chunks without a place from 2026-11-22 15:00 UTC, the first from 2026-11-22 13:00 UTC"
    assert words in lines[1]
    why = "NodePool general is at its cpu limit of 16"
    late = lines.index("  CapacityBuffer/shop/late: from 2026-11-22 15:00 UTC, 6 without a place")
    assert lines[late + 1] == f"      6 chunks without a place then: {why}"
    page = folders.diff(after, "--output=markdown", before=before).stdout
    shown = "6 chunks without a place then: " + why
    assert f"| CapacityBuffer/shop/late | from 2026-11-22 15:00 UTC | 6 | {shown} |" in page, (
        "before anything is folded"
    )


def limited(limit: int) -> dict[str, str]:
    return {"pool.yaml": POOL.replace("400", str(limit))}


def test_a_limit_below_what_is_used_is_a_warning(folders: Folders) -> None:
    """Nothing was found that speaks against merging."""
    folders.lists["nodes"] = [node("one", "general"), node("two", "general")]
    text = folders.diff(limited(10), before=limited(400)).stdout
    assert "warning: NodePool/general: it is over its cpu limit of 10: 16 used [pool-over-limit]" in text
    assert "1 new warning" in text.splitlines()[1]
    assert text.splitlines()[-1] == "Look at the warnings before you merge."


def test_a_limit_that_is_just_kept_or_was_exceeded_before_is_none(folders: Folders) -> None:
    folders.lists["nodes"] = [node("one", "general"), node("two", "general")]
    assert "pool-over-limit" not in folders.diff(limited(16), before=limited(400)).stdout
    assert "pool-over-limit" not in folders.diff(limited(8), before=limited(10)).stdout
