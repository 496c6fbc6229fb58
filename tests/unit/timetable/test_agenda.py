"""When passes are made: quiet times, back-offs, and what ends them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.errors import Failure, Invalid, Stalled, Transient, Waiting
from reconciler.timetable.agenda import Agenda, Pacing, Trigger

Step = tuple[float, Trigger | Failure | timedelta | str]
"""The second at which something happens: a failure ends the pass."""
NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
PACING = Pacing(
    quiet=timedelta(seconds=2),
    quiet_at_most=timedelta(seconds=15),
    retry_first=timedelta(seconds=1),
    retry_at_most=timedelta(minutes=1),
)
BEGIN, WELL, POLL = "a pass begins", "a pass ends well", "a poll"
IN_PART: list[Step] = [(0, "a pass begins"), (0, "some writes failed")]
BACK = timedelta(hours=1)
"""The clock is set back by it."""
NO_ANSWER, BROKEN, GONE = Transient("no answer"), Invalid("broken"), Stalled("gone", reason="Gone")
START, REQUEST, COMMIT, RETRY, CLOCK = Trigger.START, Trigger.REQUEST, Trigger.COMMIT, Trigger.RETRY, Trigger.CLOCK
TAKEN, CAME, CHANGE, TICK = Trigger.TAKEN, Trigger.CAME, Trigger.CHANGE, Trigger.TICK


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def after(*steps: Step) -> Agenda:
    made = Agenda(PACING)
    for seconds, event in steps:
        match event:
            case Trigger():
                made.want(event, at(seconds))
            case Failure():
                made.ended(at(seconds), event)
            case timedelta():
                made.set_back(event, at(seconds))
            case "a pass begins":
                made.begin(at(seconds))
            case "some writes failed":
                made.ended(at(seconds), NO_ANSWER, only_writes=True)
            case "a poll":
                made.polled(at(seconds))
            case _:
                made.ended(at(seconds), None)
    return made


def failed(failure: Failure, times: int = 1) -> list[Step]:
    return [(0, BEGIN), (0, failure)] * times


RESTLESS: list[Step] = [(second, CHANGE) for second in range(20)]
BURST: list[Step] = [(0, CHANGE), *((tenths / 10, TAKEN) for tenths in range(1, 30))]
CASES: dict[str, tuple[Sequence[Step], tuple[float, Trigger] | None]] = {
    "nothing is due while nothing happens": ([], None),
    "a start is due at once": ([(0, START)], (0, START)),
    "a request is due at once": ([(0, REQUEST)], (0, REQUEST)),
    "a tick is due at once": ([(0, TICK)], (0, TICK)),
    "a change waits for quiet": ([(0, CHANGE)], (2, CHANGE)),
    "and so does a commit": ([(0, COMMIT)], (2, COMMIT)),
    "quiet begins anew with each change": ([(0, CHANGE), (1.5, CHANGE)], (3.5, CHANGE)),
    "also that of a commit": ([(0, COMMIT), (1.5, CHANGE)], (3.5, COMMIT)),
    "a restless cluster does not put a pass off for ever": (RESTLESS, (15, CHANGE)),
    "a tick does not wait for the quiet of a change": ([(0, CHANGE), (1, TICK)], (1, CHANGE)),
    "a pass sees all that happened before it": ([(0, CHANGE), (1, TICK), (0, BEGIN)], None),
    "and nothing that comes after": ([(0, CHANGE), (1, TICK), (0, BEGIN), (5, CHANGE), (6, WELL)], (7, CHANGE)),
    "a success starts the back-off anew": (
        [*failed(NO_ANSWER, 2), (0, BEGIN), (10, WELL), (0, BEGIN), (10, NO_ANSWER)], (11, RETRY)
    ),
    "a change does not cut a back-off short": ([*failed(NO_ANSWER, 6), (1, CHANGE)], (32, RETRY)),
    "nor does a tick": ([*failed(NO_ANSWER, 6), (1, TICK)], (32, RETRY)),
    "writes that failed are tried again after a back-off": (IN_PART, (1, RETRY)),
    "which doubles once it is over": ([*IN_PART, (1, BEGIN), (1, "some writes failed")], (3, RETRY)),
    "and not for passes that something else asked for meanwhile": (IN_PART * 6, (1, RETRY)),
    "which are not delayed": ([*IN_PART, (0.2, TAKEN)], (0.35, TAKEN)),
    "and take the back-off with them once all writes succeed": ([*IN_PART, (0.5, BEGIN), (0.6, "done")], None),
    "failed writes lengthen no back-off of passes": ([*IN_PART, (1, BEGIN), (1, "some writes failed"), (3, BEGIN), (3, NO_ANSWER)], (4, RETRY)),
    "a request does, too": ([*IN_PART, (0.5, REQUEST)], (0.5, REQUEST)),
    "a newer commit is never held up by one that got no answer": ([*failed(NO_ANSWER, 6), (0, COMMIT)], (2, COMMIT)),
    "nor by a broken one": ([*failed(BROKEN, 6), (0, COMMIT)], (2, COMMIT)),
    "nor by one that is gone": ([*failed(GONE, 6), (0, COMMIT)], (2, COMMIT)),
    "nor where it came while that pass got no answer": (
        [(0, START), (0, BEGIN), (1, COMMIT), (10, NO_ANSWER)], (3, COMMIT)
    ),
    "or was broken": ([(0, START), (0, BEGIN), (1, COMMIT), (10, BROKEN)], (3, COMMIT)),
    "or gone": ([(0, START), (0, BEGIN), (1, COMMIT), (10, GONE)], (3, COMMIT)),
    "what only a person can mend waits for the next poll": ([*failed(BROKEN), (1, CHANGE), (1, TICK)], None),
    "and is looked at again then": ([*failed(BROKEN), (1, CHANGE), (1, TICK), (30, POLL)], (1, RETRY)),
    "as is what is gone": ([*failed(GONE), (1, CHANGE), (1, TICK)], None),
    "which waits for a poll too": ([*failed(GONE), (1, CHANGE), (1, TICK), (30, POLL)], (1, RETRY)),
    "a poll without news starts no pass": ([(0, POLL)], None),
    "a pass that waits has no back-off": (failed(Waiting("not synced")), None),
    "it goes on at the next change": ([*failed(Waiting("not synced")), (1, CHANGE)], (3, CHANGE)),
    "a request ends a back-off": ([*failed(NO_ANSWER), (0.1, REQUEST)], (0.1, REQUEST)),
    "a clock that is set back takes what is planned with it": (
        [*failed(NO_ANSWER, 6), (-3600, BACK)], (32 - 3600, RETRY)
    ),
    "a clock that is set back is reason enough for a pass": ([(-3600, BACK)], (-3600, CLOCK)),
    "taken room waits only for the burst that it comes in": ([(0, CHANGE), (0.1, TAKEN)], (0.25, TAKEN)),
    "which goes on": ([(0, CHANGE), (0.1, TAKEN), (0.2, TAKEN)], (0.35, TAKEN)),
    "but not for ever": (BURST, (0.6, TAKEN)),
    "room taken right after a refill is gathered as any change": (
        [(0, TAKEN), (0.15, BEGIN), (1, TAKEN)], (3, TAKEN)
    ),
    "and not after that": ([(0, TAKEN), (0.15, BEGIN), (1, TAKEN), (3, BEGIN), (3.5, TAKEN)], (3.65, TAKEN)),
    "room that has come is answered at once": ([(0, CAME)], (0.15, CAME)),
    "and delays no refill": ([(0, CAME), (0.15, BEGIN), (1, TAKEN)], (1.15, TAKEN)),
    "a pass for another reason delays no refill": ([(0, TICK), (0, BEGIN), (0.5, TAKEN)], (0.65, TAKEN)),
    "a clock that was set back delays no refill": ([(0, TAKEN), (0.15, BEGIN), (-3600, TAKEN)], (0.15 - 3600, TAKEN)),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "due"), CASES.values(), ids=CASES)
def test_when_the_next_pass_is_due_and_why(steps: Sequence[Step], due: tuple[float, Trigger] | None) -> None:
    assert after(*steps).due() == (None if due is None else (at(due[0]), due[1]))


def test_a_transient_failure_is_retried_after_a_back_off_that_doubles_up_to_its_limit() -> None:
    made, now, delays = after((0, TICK)), NOON, []
    for _ in range(8):
        made.begin(at(0))
        made.ended(now, NO_ANSWER)
        due = made.due()
        assert due is not None
        assert due[1] is RETRY
        delays.append((due[0] - now).total_seconds())
        now = due[0]
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60]
