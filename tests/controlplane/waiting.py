"""Waits until something holds, with a deadline, and says what was last seen.

The only place in the tests that sleeps. Called by the control plane while it starts and by
every test that waits for a controller to act.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

# What a check may raise to say "not yet". ApiError and the errors of refused connections are
# OSErrors; a KeyError or IndexError is a field that has not appeared. Anything else is a
# mistake in the check itself and is shown at once.
NOT_YET = (AssertionError, LookupError, OSError)

_SHOWN = 2000


def eventually(check: Callable[[], T], *, within: float, what: str, every: float = 0.1) -> T:
    """Call `check` until it returns something true, and return that.

    A check that raises one of NOT_YET is tried again as well, so that it can say with an
    `assert` what it found instead. Raises AssertionError once `within` seconds have passed.
    """
    deadline = time.monotonic() + within
    while True:
        seen: object
        try:
            result = check()
        except NOT_YET as error:
            seen = f"{type(error).__name__}: {error}"
        else:
            if result:
                return result
            seen = repr(result)
        left = deadline - time.monotonic()
        if left <= 0:
            message = f"{what}: not so within {within:g} s; last seen: {str(seen)[:_SHOWN]}"
            raise AssertionError(message)
        time.sleep(min(every, left))


def moments(*, within: float, every: float) -> Iterator[float]:
    """The seconds that have passed, at each look, until `within` of them have: for what must hold all the time."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < within:
        yield passed
        time.sleep(every)
