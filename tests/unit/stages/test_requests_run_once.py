"""Requests from Git run once: not again after they have ended, whatever became of their objects or of the process."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from reconciler.catalog.observed import ClusterCatalog
from reconciler.clocks import FixedClock
from reconciler.cluster.snapshot.files import snapshot_at
from reconciler.model.changes import ApplyStatus, Plan, Write, WriteResult
from reconciler.model.provisioning_requests import Phase
from reconciler.wiring.session import make_cycle
from tests.fakes.embedded import Document
from tests.fakes.requests import ATOMIC, BatchShop, pod_template, request, request_ref
from tests.unit.cluster.documents import capture

# Requests from Git run once: not again after they have ended, whatever became of their objects, and whoever asks.

WEEK = timedelta(days=7)
KEPT = timedelta(hours=168)


def files(*documents: Document) -> dict[str, str]:
    return {f"{number}.yaml": yaml.safe_dump(document) for number, document in enumerate(documents)}


TRAIN = request(count=3, class_name=ATOMIC)


def ended(*, collected: bool = False) -> BatchShop:
    """A request from Git that was provisioned, and whose booking is over."""
    shop = BatchShop(files=files(TRAIN, pod_template()))
    shop.settle()
    shop.wait(timedelta(minutes=10))
    shop.settle()
    assert shop.conditions()["BookingExpired"][0] == "True"
    if collected:
        shop.wait(KEPT)
        shop.settle()
        assert shop.cluster.get(request_ref()) is None
    assert shop.claims() == []
    return shop


def is_idle(plan: Plan) -> bool:
    return not plan.has_changes and all(item.demand.desired == 0 for item in plan.demands)


@pytest.mark.parametrize("collected", [False, True])
def test_it_is_neither_run_nor_applied_again(*, collected: bool) -> None:
    shop = ended(collected=collected)
    shop.restart()
    assert is_idle(shop.plan())
    shop.settle()
    assert shop.claims() == []
    assert (shop.cluster.get(request_ref()) is None) == collected


def test_an_object_that_somebody_made_anew_is_not_run_either() -> None:
    shop = ended(collected=True).given(TRAIN)
    assert shop.claims() == []
    assert shop.conditions() == {"Failed": ("True", "RanBefore")}


def test_a_check_whose_first_answer_is_the_last_is_created_so_that_it_can_tell_it() -> None:
    once = request(count=1, parameters={"noRetry": "true"})
    shop = BatchShop(files=files(once, pod_template()))
    shop.settle()
    assert shop.conditions()["Failed"] == ("True", "CapacityIsNotFound")
    assert is_idle(shop.plan())
    shop.wait(KEPT)
    shop.settle()
    assert shop.cluster.get(request_ref()) is None
    assert is_idle(shop.plan())


def test_to_delete_the_object_before_it_has_ended_cancels_it() -> None:
    shop = BatchShop(files=files(TRAIN, pod_template()))
    shop.run()
    shop.sandbox.wait(1)
    shop.run()
    assert len(shop.claims()) == 1
    shop.cluster.delete(request_ref())
    shop.settle()
    assert shop.claims() == []
    assert shop.cluster.get(request_ref()) is None


def test_to_remove_its_document_before_it_has_ended_cancels_it_for_good() -> None:
    """A commit that is reverted runs nothing again, nor does one that brings the document back with another spec."""
    shop = BatchShop(files=files(TRAIN, pod_template()))
    shop.settle()
    assert shop.conditions()["Provisioned"][0] == "True"
    shop.source.commit(files(pod_template()))
    shop.settle()
    assert shop.claims() == []
    assert shop.cluster.get(request_ref()) is None
    for again in (TRAIN, request(count=4, class_name=ATOMIC)):
        shop.source.commit(files(again, pod_template()))
        shop.settle()
        assert is_idle(shop.plan())
        assert shop.claims() == []
        assert shop.cluster.get(request_ref()) is None


def test_one_that_had_not_begun_when_its_document_was_removed_may_run() -> None:
    waiting = request(count=3, class_name=ATOMIC, template="later")
    shop = BatchShop(files=files(waiting))
    shop.settle()
    shop.source.commit(files(pod_template("other")))
    shop.settle()
    assert shop.cluster.get(request_ref()) is None
    shop.source.commit(files(waiting))
    shop.settle(pod_template("later"))
    assert shop.conditions()["Provisioned"][0] == "True"


def test_a_snapshot_carries_what_is_remembered(tmp_path: Path) -> None:
    shop = ended(collected=True)
    capture(shop.read, tmp_path / "shot")
    cluster = snapshot_at(str(tmp_path / "shot"))
    cycle = make_cycle(
        shop.settings,
        source=shop.source,
        cluster=cluster,
        catalog=ClusterCatalog("snapshot"),
        clock=FixedClock(shop.sandbox.clock.now()),
    )
    plan = cycle.plan().required_plan
    assert is_idle(plan)
    assert [item.demand.request.phase for item in plan.demands if item.demand.request] == [Phase.ENDED]


def test_an_edited_document_is_a_finding_and_does_not_run() -> None:
    shop = ended(collected=True)
    shop.source.commit(files(request(count=6, class_name=ATOMIC), pod_template()))
    plan = shop.plan()
    assert [finding.code for finding in plan.findings if finding.ref == request_ref()] == ["immutable-field"]
    shop.settle()
    assert shop.claims() == []


def test_it_is_remembered_for_a_while_after_it_has_left_the_repository() -> None:
    """A commit that is reverted runs nothing again."""
    shop = ended()
    shop.source.commit(files(pod_template()))
    shop.settle()
    assert shop.cluster.get(request_ref()) is None
    shop.source.commit(files(TRAIN, pod_template()))
    shop.settle()
    assert shop.claims() == []
    shop.source.commit(files(pod_template()))
    shop.settle()
    shop.wait(WEEK)
    shop.settle()
    assert "provisioningRequests" not in shop.cluster.view().inventory.records


def test_while_a_document_cannot_be_read_its_record_is_kept() -> None:
    shop = ended(collected=True)
    shop.wait(WEEK)
    shop.restart()
    shop.source.commit(files(pod_template()) | {"0.yaml": "a: [b"})
    shop.settle()
    assert "shop/train" in shop.cluster.view().inventory.records["provisioningRequests"]


def test_nothing_is_launched_before_its_object_is_there() -> None:
    shop = BatchShop(files=files(TRAIN, pod_template()))
    plan = shop.plan()
    assert len(plan.node_claims.create) == 1
    shop.run()
    assert shop.claims() == []
    assert "provisioningRequests" not in shop.cluster.view().inventory.records
    shop.run()
    assert len(shop.claims()) == 1


# A process that is killed after the inventory was written and before a status was: the next one makes the status good.


class Killed(BaseException):
    """Nothing of the process runs after it."""


def test_the_last_no_of_a_check_is_told_as_it_would_have_been(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"request.yaml": yaml.safe_dump(request(count=40, parameters={"noRetry": "true"}))}
    shop, whole = BatchShop(files=files), BatchShop(files=files)
    write = shop.cluster.write

    def killed(item: Write, *, dry_run: bool = False) -> WriteResult:
        if isinstance(item, ApplyStatus) and item.ref == request_ref() and not dry_run:
            raise Killed
        return write(item, dry_run=dry_run)

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(shop.cluster, "write", killed)
        shop.settle()
    assert shop.conditions() == {}
    shop.restart()
    shop.settle()
    whole.settle()
    assert shop.conditions() == whole.conditions()
    assert set(shop.conditions()) == {"Accepted", "CapacityAvailable", "Failed"}
