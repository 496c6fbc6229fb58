"""What `headroom diff` says of what schedules ask for later: each thing with the time at which it begins."""

from __future__ import annotations

from tests.manifests import document, schedule
from tests.unit.cli.two_folders import POOL, SHAPE, START, Folders, buffer

NAME = "CapacityBuffer/shop/web"


def office(count: int, *, since: int = 13, until: int = 14, otherwise: int = 2) -> str:
    return schedule("office", count, f"hours: {since}", f"hours: {until}", default=otherwise)


def following(template: str = "web") -> str:
    return buffer(template=template, replicas_from="office")


def files(hours: str, *, template: str = "web", limit: str = "400") -> dict[str, str]:
    pool = POOL.replace("400", limit)
    return {"pool.yaml": pool, "shape.yaml": SHAPE, "web.yaml": following(template), "office.yaml": hours}


def test_not_ready_at_once_and_more_lost_later(folders: Folders) -> None:
    """The bound said that it is not ready from 13:00 on, which is only when it loses the most."""
    done = folders.diff(files(office(3), template="wbe"), "--no-unplaced", before=files(office(3)))
    assert done.return_value == 3, done.output
    words = (
        "not ready from 2026-11-22 12:00 UTC, so that 2 chunks lose their place, up to 3 from 2026-11-22 13:00 UTC:"
        " PodTemplate/shop/wbe does not exist"
    )
    assert f"{NAME}: {words}" in done.stderr
    assert "Less room: shop/web 2 or 3 → 0 chunks (PodTemplate/shop/wbe does not exist)" in done.stdout.splitlines()[1]
    (row,) = folders.document(files(office(3), template="wbe"), before=files(office(3)))["changes"]["later"]
    assert (row["first"], row["from"], row["unplaced"]) == ("2026-11-22T12:00:00Z", "2026-11-22T13:00:00Z", 3)


def test_chunks_without_a_place_grow_with_the_schedule(folders: Folders) -> None:
    before = files(office(20, otherwise=10))
    done = folders.diff(files(office(20, otherwise=10), limit="8"), "--no-unplaced", before=before)
    assert (
        "3 chunks without a place from 2026-11-22 12:00 UTC, up to 13 from 2026-11-22 13:00 UTC: NodePool general is"
        in done.stderr
    )


def test_an_edited_schedule_shows_whom_it_makes_larger_and_when(folders: Folders) -> None:
    """No demand was listed, since only the present was compared, and growth began with its peak."""
    before, after = files(office(16, until=14)), files(office(24, until=16))
    done = folders.diff(after, "--max-new-nodes=1", before=before)
    lines = done.stdout.splitlines()
    # Seven chunks a node. From 14:00 on the base asks for 2 again.
    assert "1 more node from 2026-11-22 13:00 UTC, up to 3 from 2026-11-22 14:00 UTC" in lines[1]
    assert "up to 3 new nodes from 2026-11-22 14:00 UTC; 1 is allowed" in done.stderr
    words = "2 or 16 → 24 chunks daily 13:00–16:00 UTC"
    assert f"  {NAME}: {words}" in lines
    page = folders.diff(after, "--output=markdown", before=before).stdout
    assert f"| {NAME} | {words} |  | more room; 24 by MetricsProducer/shop/office |" in page
    (row,) = folders.document(after, before=before)["changes"]["moreRoom"]
    assert (row["name"], row["before"], row["after"], row["from"]) == ("web", 2, 24, "2026-11-22T14:00:00Z")


def test_all_sizes_of_the_hours_that_are_named_are_told(folders: Folders) -> None:
    """`2 → 12 chunks daily 11:00–14:00 UTC` was wrong from 13:00 on: 10 → 12."""
    before = files(office(10))
    shown = folders.diff(files(office(12, since=11)), before=before).stdout
    for name in ("More room: shop/web", f"  {NAME}:"):
        assert f"{name} 2 or 10 → 12 chunks daily 11:00–14:00 UTC" in shown
    shown = folders.diff({**before, "web.yaml": buffer(1)}, before=before).stdout
    assert "Less room: shop/web 2 or 10 → 1 chunk (1 requested)" in shown


def test_nobody_knows_how_many_chunks_of_what_is_not_ready_have_no_place(folders: Folders) -> None:
    """It was 0, beside the headline that 20 lose theirs."""
    after = START | {"web.yaml": buffer(template="wbe")}
    (row,) = folders.document(after)["changes"]["demands"]
    assert (row["unplacedBefore"], row["unplaced"]) == (0, None)
    assert "         20 → not ready" in folders.diff(after).stdout.splitlines(), "over the week"
    page = folders.diff(after, "--output=markdown").stdout
    assert f"| {NAME} | 20 → not ready | – |" in page
    assert 'data-column="Unplaced">–</td>' in folders.diff(after, "--output=html").stdout


def test_a_new_buffer_without_its_schedule_is_not_made_and_the_week_says_so(folders: Folders) -> None:
    """The finding said that its size stays, and the week that it is absent."""
    after = {name: text for name, text in files(office(3)).items() if name != "office.yaml"}
    lines = folders.diff(after, before=files(office(3))).stdout.splitlines()
    assert any(
        "nor in the cluster: the CapacityBuffer is not made until its schedule is there [schedule-not-found]" in line
        for line in lines
    )
    assert "         2 to 3 → not ready" in lines
    assert "after: not ready" in folders.diff(after, "--output=html", before=files(office(3))).stdout


def test_a_buffer_of_the_cluster_keeps_its_size_over_the_week_without_its_schedule(folders: Folders) -> None:
    """Its size stays as it is, and the week called it absent."""
    after = {name: text for name, text in files(office(3)).items() if name != "office.yaml"}
    folders.lists["capacitybuffers"] = [document(buffer(2))]
    lines = folders.diff(after, before=files(office(3))).stdout.splitlines()
    assert any("nor in the cluster: the size stays as it is [schedule-not-found]" in line for line in lines)
    assert "         2 to 3 → 2" in lines
