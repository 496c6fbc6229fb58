"""What a terminal is told while numba compiles the loops of placement."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import patch

from reconciler.cli.console import Compilation, is_kept, words_of
from reconciler.placement.loops.kernel import jit


def test_that_loops_are_compiled_is_known_while_it_lasts() -> None:
    jitted = jit()
    assert jitted is not None, "numba is one of the dependencies"
    names: dict[str, Any] = {}
    exec("def add(one, other):\n    return one + other", names)  # in no file, so that it is compiled now
    compilation, heard, over = Compilation(), set[bool](), threading.Event()
    assert not compilation.is_under_way()

    def listen() -> None:
        while not over.wait(0.001):
            heard.add(compilation.is_under_way())

    listener = threading.Thread(target=listen)
    listener.start()
    assert jitted(names["add"])(1, 2) == 3
    over.set()
    listener.join()

    assert True in heard
    assert not compilation.is_under_way()


def test_the_words_say_whether_it_is_done_once() -> None:
    assert is_kept()
    assert words_of("placement", compiling=True) == "compiling the placement loops, once on this machine"
    with patch("reconciler.cli.console.is_kept", lambda: False):
        assert "in each process" in words_of("placement", compiling=True)
    assert words_of("placement") == "placing chunks"
    assert words_of("plan", compiling=True) == "planning, and checking the repository's templates"
