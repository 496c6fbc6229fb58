"""A process that is killed after the inventory was written and before a status was: the next one makes the status good."""

from __future__ import annotations

from contextlib import suppress

import pytest
import yaml

from reconciler.model.changes import ApplyStatus, Write, WriteResult
from tests.fakes.requests import BatchShop, request, request_ref


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
