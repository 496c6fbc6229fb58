"""What a terminal is told while numba compiles the loops of placement."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.cli.progress import words_of
from reconciler.placement.engine.compiling import NOW, jit


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    kept = NOW.kept
    yield
    NOW.depth, NOW.kept = 0, kept


def test_that_loops_are_compiled_and_whether_that_is_kept_is_known_while_it_lasts() -> None:
    jitted = jit()
    assert jitted is not None, "numba is one of the dependencies"
    names: dict[str, Any] = {}
    exec("def add(one, other):\n    return one + other", names)  # in no file, so that it cannot be kept
    NOW.kept = True
    heard: set[str] = set()
    over = threading.Event()

    def listen() -> None:
        while not over.wait(0.001):
            heard.add(words_of("placement"))

    listener = threading.Thread(target=listen)
    listener.start()
    assert jitted(names["add"])(1, 2) == 3
    over.set()
    listener.join()

    assert any("compiling the loops that place many chunks, anew each time" in words for words in heard)
    assert words_of("placement") == "placing chunks"


def test_what_is_kept_is_compiled_once() -> None:
    NOW.depth, NOW.kept = 1, True

    assert words_of("placement") == "compiling the loops that place many chunks, once on this machine"
    assert words_of("plan") == "planning"
