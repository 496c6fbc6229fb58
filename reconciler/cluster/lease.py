"""Leader election by a Lease: of several replicas only the holder writes.

The times are the usual ones. A lease lasts 35 s, its holder steps down if it could not renew it for 30 s, and every candidate tries
every 5 s. As in client-go's leaderelection, a lease has expired if this replica saw no renewal for its duration by its own clock:
clocks of machines differ. Unlike there, a deleted lease belongs to its last holder until it would have expired, since only a holder
that ends gives it up.

Why two never lead: a holder counts from before the read that its renewal began with. A candidate counts from the answer that showed the
renewal. So the candidate's 35 s end at least 5 s after the holder's 30 s, however slow calls are. Clocks may differ in speed by a tenth. A
candidate that has never seen the lease takes a deleted one at once; the holder notices at its next attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Protocol

import msgspec

from reconciler.cluster.connection import CONFLICT, JSON, NOT_FOUND, Connection
from reconciler.cluster.decoding.wire import MetadataWire
from reconciler.cluster.discovery import collection_path
from reconciler.manifests.pods.pod_spec_wire import Wire
from reconciler.model.errors import Failure, Transient, message_of

LEASE_SECONDS = 35
RENEW_SECONDS = 30.0
RETRY_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""How long one call may take, so that a single one that hangs does not cost the leadership."""
_JOIN_SECONDS = 5.0
_CLOCK_MARGIN = 1.0
"""By how much two clocks may differ over the length of a lease."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """holder: "" if the lease is free. version: the resourceVersion as read, "" if it does not exist yet."""

    holder: str = ""
    seconds: int = LEASE_SECONDS
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    version: str = ""


class Leases(Protocol):
    """Where the one Lease is kept."""

    def read(self) -> LeaseRecord:
        """Raises `Transient`."""

    def write(self, record: LeaseRecord) -> LeaseRecord | None:
        """Writes over the version that was read; None if another client was faster. Raises `Transient`."""


class LeaderElection:
    """One candidate. `step` is one attempt; `start` makes one every five seconds in a thread.

    monotonic: seconds that only increase. now: the time to write into the Lease, for people to read.
    """

    def __init__(
        self, leases: Leases, identity: str, *, monotonic: Callable[[], float], now: Callable[[], datetime]
    ) -> None:
        self._leases = leases
        self._identity = identity
        self._monotonic = monotonic
        self._now = now
        self._renewed: float | None = None
        self._failure = ""
        self._observed = LeaseRecord()
        self._observed_at = self._looked_at = monotonic()
        self._stopping = Event()
        self._thread: Thread | None = None

    def is_leader(self) -> bool:
        """Whether this replica may write now."""
        renewed = self._renewed
        return renewed is not None and self._monotonic() - renewed < RENEW_SECONDS

    def seconds_left(self) -> float:
        """How long a write that begins now may take before another replica can lead."""
        renewed = self._renewed
        return 0.0 if renewed is None else LEASE_SECONDS - _CLOCK_MARGIN - (self._monotonic() - renewed)

    @property
    def holder(self) -> str:
        """The leader at the last attempt; "" if there was none, before the first attempt, and where the lease could not be read or renewed."""
        holder = self._observed.holder
        return "" if self.trouble or (holder == self._identity and not self.is_leader()) else holder

    @property
    def trouble(self) -> str:
        """Why this replica neither leads nor knows who does, as the last attempt says it; "" if that attempt succeeded, or while it leads."""
        return f"no leader is known: {self._failure}" if self._failure and not self.is_leader() else ""

    def step(self) -> None:
        """Takes the lease if it is free or has expired, or renews this replica's own. Never raises, since it is repeated."""
        try:
            # The faster client may have taken the lease. This must be known before the next step.
            if not self._attempt():
                self._attempt()
        except Exception as error:  # noqa: BLE001 - a thread that ended would never lead again
            self._failure = message_of(error)
        else:
            self._failure = ""

    def _attempt(self) -> bool:
        """Reads and writes the lease; False if another client wrote it in between."""
        began = self._monotonic()
        record = self._leases.read()
        answered = self._monotonic()
        if not record.version:
            # Deleting the Lease does not end its holder's leadership: the holder goes on until it looks again.
            # It may have renewed the Lease since this replica last saw it, so that the absence counts as a renewal.
            record = replace(self._observed, version="")
        # Versions tell whether a Lease that is there has changed. An absence is the same one only if it was looked at all the time.
        is_same = record == self._observed and (bool(record.version) or answered - self._looked_at < LEASE_SECONDS)
        if not is_same:
            self._observed, self._observed_at = record, answered
        self._looked_at = answered
        # One that has not led for long may have missed another holder of a Lease that is absent now.
        ours = record.holder == self._identity and (bool(record.version) or self.is_leader())
        if not ours and record.holder and answered - self._observed_at < max(record.seconds, LEASE_SECONDS):
            self._renewed = None
            return True
        if self._stopping.is_set():
            return True
        written = self._leases.write(self._claim(record, ours=ours))
        if written is None:
            self._renewed = None if not ours else self._renewed
            return False
        self._observed, self._observed_at = written, began
        # A write that was under way when this replica stopped is no reason to lead again.
        self._renewed = None if self._stopping.is_set() else began
        return True

    def start(self) -> None:
        """Makes attempts until `close`."""
        self._thread = Thread(target=self._run, name="headroom-lease", daemon=True)
        self._thread.start()

    def close(self, *, release: bool = True) -> None:
        """Stops. release: gives the lease up, so that another replica need not wait until it expires.

        That is allowed only after this replica's last write.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)
        leads, self._renewed = self.is_leader(), None
        if not (leads and release):
            return
        try:
            record = self._leases.read()
            if record.holder == self._identity:
                self._leases.write(replace(record, holder="", seconds=1, renewed=self._text()))
        except Failure:
            return

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.step()
            self._stopping.wait(RETRY_SECONDS)

    def _claim(self, record: LeaseRecord, *, ours: bool) -> LeaseRecord:
        return LeaseRecord(
            holder=self._identity,
            acquired=record.acquired if ours else self._text(),
            renewed=self._text(),
            transitions=record.transitions + (0 if ours or not record.version else 1),
            version=record.version,
        )

    def _text(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _SpecWire(Wire, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _LeaseWire(msgspec.Struct, rename="camel"):
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"
    metadata: MetadataWire = MetadataWire()
    spec: _SpecWire = _SpecWire()


class KubernetesLeases:
    """The Lease namespace/name of a real cluster."""

    def __init__(self, connection: Connection, namespace: str, name: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._name = name
        self._collection = collection_path("coordination.k8s.io", "v1", "leases", namespace)

    def read(self) -> LeaseRecord:
        answer = self._connection.request(
            "GET", f"{self._collection}/{self._name}", resource="leases", seconds=ANSWER_SECONDS
        )
        if answer.status == NOT_FOUND:
            return LeaseRecord()
        if not answer.ok:
            raise Transient(f"the Lease cannot be read: {answer.refusal}")
        return _record(answer.data)

    def write(self, record: LeaseRecord) -> LeaseRecord | None:
        lease = _LeaseWire(
            metadata=MetadataWire(self._name, self._namespace, resource_version=record.version),
            spec=_SpecWire(
                record.holder, record.seconds, record.acquired or None, record.renewed or None, record.transitions
            ),
        )
        method, path = ("PUT", f"{self._collection}/{self._name}") if record.version else ("POST", self._collection)
        headers = {"Content-Type": JSON}
        body = msgspec.json.encode(lease)
        answer = self._connection.request(
            method, path, body=body, headers=headers, resource="leases", always=True, seconds=ANSWER_SECONDS
        )
        if answer.status == CONFLICT:
            return None
        if not answer.ok:
            raise Transient(f"the Lease cannot be written: {answer.refusal}")
        return _record(answer.data)


def _record(data: bytes) -> LeaseRecord:
    try:
        lease = msgspec.json.decode(data, type=_LeaseWire)
    except msgspec.MsgspecError as error:
        raise Transient(f"the Lease cannot be understood: {error}") from error
    spec = lease.spec
    return LeaseRecord(
        holder=spec.holder_identity or "",
        seconds=spec.lease_duration_seconds or LEASE_SECONDS,
        acquired=spec.acquire_time or "",
        renewed=spec.renew_time or "",
        transitions=spec.lease_transitions or 0,
        version=lease.metadata.resource_version,
    )
