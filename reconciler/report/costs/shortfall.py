"""What a demand loses by a change, computed from its service before and after. Headline, verdict and bounds all use this."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from reconciler.model.service import Service
from reconciler.report.service import NOT_SHOWN
from reconciler.report.words import counted, moment


@dataclass(frozen=True, slots=True)
class Shortfall:
    """losing: how many chunks have a place before but not after. lacking: how many others have none, beyond those before.

    unready: it becomes not ready. unsure: how many chunks are left to an autoscaler that nothing in the cluster shows. handed_over:
    how many of these have a place before. Truthy if any of this is so.
    """

    losing: int = 0
    lacking: int = 0
    unready: bool = False
    unsure: int = 0
    handed_over: int = 0
    why: str = ""

    @property
    def chunks(self) -> int:
        """How many chunks have no place because of the change."""
        return self.losing + self.lacking

    def __bool__(self) -> bool:
        return bool(self.chunks or self.unready or self.unsure)


@dataclass(frozen=True, slots=True)
class Loss:
    """What a demand loses over time. first, since: its first loss, and when that begins. worst, at: the largest, and when it begins."""

    first: Shortfall
    since: datetime
    worst: Shortfall
    at: datetime


def shortfall(before: Service | None, after: Service | None) -> Shortfall:
    """What a demand loses. before, after: None if it is absent on that side."""
    if after is None or after.is_left:
        return Shortfall()
    old = before or Service(0)
    if not after.ready:
        return Shortfall(losing=old.served, unready=old.ready, why=after.why)
    losing = max(0, min(old.served, after.wanted or 0) - after.served)
    newly = max(0, after.missing - old.missing)
    unsure = 0 if after.certain or not old.certain else after.served
    return Shortfall(losing, max(0, newly - losing), unsure=unsure, handed_over=min(unsure, old.served), why=after.why)


def short_words(short: Shortfall, when: str, later: str = "") -> list[str]:
    """A sentence for each kind of loss. when: since when, in words. later: how it goes on, in words."""
    why = f": {short.why}" if short.why else ""
    if short.unready:
        lost = f", so that {losing_words(short.losing)}{later}" if short.losing else ""
        return [f"not ready {when}{lost}{why}"]
    words = [f"{counted(short.chunks, 'chunk')} without a place {when}{later}{why}"] if short.chunks else []
    if short.unsure:
        have = "has" if short.unsure == 1 else "have"
        words.append(f"whether {counted(short.unsure, 'chunk')} {have} a place is unknown: {NOT_SHOWN}")
    return words


def loss_words(loss: Loss, zone: tzinfo | None) -> list[str]:
    """A sentence for each kind of loss: since when, and if it grows, the most and when that begins."""
    first, worst = loss.first, loss.worst
    since, at = f"from {moment(loss.since, zone)}", f"from {moment(loss.at, zone)}"
    if first.unready != worst.unready or (worst.chunks and not first.chunks and not first.unready):
        return [*short_words(first, since), *short_words(worst, at)]
    if worst.chunks == first.chunks:
        return short_words(worst, since)
    if not first.chunks:
        return short_words(worst, since, f" {at}")
    begun = replace(worst, losing=first.losing, lacking=first.lacking)
    return short_words(begun, since, f", up to {worst.chunks:,} {at}")


def losing_words(count: int) -> str:
    """`1 chunk loses its place`, `3 chunks lose their place`."""
    return f"{counted(count, 'chunk')} {'loses its' if count == 1 else 'lose their'} place"
