"""When which replica led, by the audit log alone, and what was written by one that did not.

All times are the API server's own. A replica leads from a write of the Lease in its name until the first of these:

- it gives the Lease up, or its process ends;
- the Lease has not been renewed for its duration;
- the other replica has taken it;
- somebody who is no replica has overwritten it, and the replica has looked at it again. A replica looks every five seconds,
  and until then it cannot know.

A deleted Lease is still its last holder's: nobody gave it up, and the other replica must not take it before its time is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.controlplane.audit import AuditEvent

LEASES = "leases"


@dataclass(frozen=True)
class Term:
    """From one write of the Lease on; the renewals of one leader are terms that overlap."""

    replica: str
    begins: datetime
    ends: datetime


class LeadHistory:
    """events: of the audit log, in order. exits: when processes of each replica ended."""

    def __init__(self, events: Sequence[AuditEvent], exits: Mapping[str, Sequence[datetime]]) -> None:
        self._exits = exits
        self._lease = [event for event in events if event.resource == LEASES and event.succeeded]
        self._looks = [event for event in events if event.resource == LEASES and event.verb == "get"]
        self.writes = [event for event in events if event.user in exits and event.is_write and event.resource != LEASES]
        self.terms = [self._term(event) for event in self._lease if event.user in exits and _holder(event)]

    @property
    def handovers(self) -> int:
        """How often another replica took the lead."""
        return sum(before.replica != after.replica for before, after in zip(self.terms, self.terms[1:], strict=False))

    def late_writes(self) -> dict[Term | None, list[AuditEvent]]:
        """Writes by a replica that did not lead when they came in, by its last term; None: it had never led."""
        late: dict[Term | None, list[AuditEvent]] = {}
        for write in self.writes:
            came = _time(write.received)
            begun = [term for term in self.terms if term.replica == write.user and term.begins <= came]
            last = max(begun, key=lambda term: term.ends, default=None)
            if last is None or last.ends < came:
                late.setdefault(last, []).append(write)
        return late

    def _term(self, taken: AuditEvent) -> Term:
        begins = _time(taken.received)
        runs_out = begins + timedelta(seconds=taken.body["spec"]["leaseDurationSeconds"])
        return Term(taken.user, begins, min([runs_out, *self._endings(taken)]))

    def _endings(self, taken: AuditEvent) -> Iterator[datetime]:
        """Whatever ended the lead that `taken` began, in any order."""
        begins = _time(taken.received)
        yield from (exit_ for exit_ in self._exits[taken.user] if exit_ > begins)
        for event in self._lease:
            if _time(event.at) <= _time(taken.at) or event.verb == "delete" or not event.is_write:
                continue
            if event.user == taken.user:
                if not _holder(event):
                    yield _time(event.received)
            elif event.user in self._exits:
                yield _time(event.at)
            else:
                yield from self._next_look(taken.user, _time(event.at))

    def _next_look(self, replica: str, after: datetime) -> Iterator[datetime]:
        for look in self._looks:
            if look.user == replica and _time(look.received) >= after:
                yield _time(look.at)
                return


def _holder(event: AuditEvent) -> str:
    """Whom a write of the Lease made its holder; "" for a read, a deletion or a release."""
    return str(event.body.get("spec", {}).get("holderIdentity") or "") if event.is_write else ""


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
