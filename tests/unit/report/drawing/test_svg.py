"""Colours of the scale, and texts that fit their room."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.drawing.svg import STEPS, Drawing, fitting, on_step, step_of


def contrast(one: str, two: str) -> float:
    """As WCAG 2.2 has it, 1 to 21."""

    def luminance(colour: str) -> float:
        parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_on_what_is_behind_it(dark: bool) -> None:  # noqa: FBT001 - a parameter of a test
    style = Drawing(100, "", "").svg(10).partition("@media")[2 if dark else 0]
    colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", style))
    pairs = [("ink", "page"), ("soft", "page"), ("bad", "page"), ("ink", "faint")]
    pairs += [("onlow" if on_step(step) == "onlow" else "onhigh", f"v{step}") for step in range(STEPS)]
    for text, behind in pairs:
        assert contrast(colour[text], colour[behind]) >= 4.5, (text, behind)


@given(values=st.lists(st.integers(0, 10**6), min_size=2, max_size=20))
def test_colours_rise_with_values(values: list[int]) -> None:
    steps = [step_of(value, values) for value in sorted(values)]
    assert steps == sorted(steps)
    assert all(0 <= step < STEPS for step in steps)
    if len(set(values)) > 1:
        assert (steps[0], steps[-1]) == (0, STEPS - 1)


@given(text=st.text("abcdefgh-/0123456789", max_size=80), width=st.integers(0, 400))
def test_a_text_that_is_cut_fits_and_keeps_its_ends(text: str, width: int) -> None:
    cut = fitting(text, width)
    if cut != text:
        assert "…" in cut
        head, _, tail = cut.partition("…")
        assert text.startswith(head)
        assert text.endswith(tail)


@given(values=st.lists(st.integers(0, 10**6), min_size=2, max_size=30))
def test_something_never_looks_like_nothing(values: list[int]) -> None:
    shown = [0, *values]
    assert all(step_of(value, shown) > step_of(0, shown) for value in values if value)
