"""What a demand loses by a change, from whether it is served before and after: headline, verdict and bounds go by this alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from reconciler.model.service import Service
from reconciler.report.service import NOT_SHOWN
from reconciler.report.words import counted, moment


@dataclass(frozen=True, slots=True)
class Shortfall:
    """losing: chunks that have a place before and none after. lacking: others that are asked for and have none, beyond those of before.

    unready: it is not ready, and was not so before. unsure: chunks that are left to an autoscaler of which the cluster shows nothing;
    handed_over: those of them that have a place before. True where there is anything of it.
    """

    losing: int = 0
    lacking: int = 0
    unready: bool = False
    unsure: int = 0
    handed_over: int = 0
    why: str = ""

    @property
    def chunks(self) -> int:
        """Without a place because of the change."""
        return self.losing + self.lacking

    def __bool__(self) -> bool:
        return bool(self.chunks or self.unready or self.unsure)


@dataclass(frozen=True, slots=True)
class Loss:
    """What a demand loses over time. first, since: what it loses first, and from when; worst, at: the most of it, and from when."""

    first: Shortfall
    since: datetime
    worst: Shortfall
    at: datetime


def shortfall(before: Service | None, after: Service | None) -> Shortfall:
    """None: the demand is absent on that side."""
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
    """A sentence for each thing that is lost. when: from when on, in words. later: what becomes of the chunks after that, in words."""
    why = f": {short.why}" if short.why else ""
    if short.unready:
        lost = f", so that {losing_words(short.losing)}{later}" if short.losing else ""
        return [f"not ready {when}{lost}{why}"]
    words = [f"{counted(short.chunks, 'chunk')} without a place {when}{later}{why}"] if short.chunks else []
    if short.unsure:
        have = "has" if short.unsure == 1 else "have"
        words.append(f"whether {counted(short.unsure, 'chunk')} {have} a place cannot be told: {NOT_SHOWN}")
    return words


def loss_words(loss: Loss, zone: tzinfo | None) -> list[str]:
    """A sentence for each thing that is lost: from when on, and where it grows also how much at most and from when."""
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
