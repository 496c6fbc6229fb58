"""One process renders for all tests: it is the real one, but to start it for each cycle takes a tenth of a second."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest

from reconciler.render.templates import RenderProcess

_one = cache(RenderProcess)


@pytest.fixture(autouse=True, scope="module")
def one_render_process() -> Iterator[None]:
    """Not for tests whose cycles run in several threads."""
    with patch("reconciler.render.templates.RenderProcess", _one):
        yield
