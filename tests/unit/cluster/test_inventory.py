"""How much room what is remembered takes in the inventory's ConfigMap, which holds 1 MiB."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.cluster.inventory import memory_text
from reconciler.model.request_records import RequestRecord, records_memory

NOW = datetime(2026, 11, 23, 12, 0, 0, 123456, tzinfo=UTC)
OBJECT = RequestRecord(uid="0b9e0d5e-6a5b-4a4e-8a52-7c1e9d1f2a33", spec="0123456789ab")
ENDED = RequestRecord(OBJECT.uid, OBJECT.spec, outcome="BookingExpired/CapacityReservationTimeExpired", ended=NOW)
BOOKED = RequestRecord(
    *(OBJECT.uid, OBJECT.spec),
    attempt=2,
    provisioned=NOW,
    consumed=(3,),
    located={"ip-10-0-12-123.eu-central-1.compute.internal": (4,)},
)


@pytest.mark.parametrize(("record", "most"), [(ENDED, 230_000), (BOOKED, 310_000)])
def test_1000_requests_take_what_the_pages_say(record: RequestRecord, most: int) -> None:
    records = {f"research/training-of-the-{number:04}": record for number in range(1_000)}
    assert most - 10_000 < len(memory_text(records_memory(records))) < most
