"""Label selectors written as one line, as scales and `headroom.dev/percent-of` have them."""

from __future__ import annotations

import pytest

from reconciler.model.errors import Invalid
from reconciler.model.requirements import parse_selector


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=shop", False),
        ("app!=shop", True),
        ("app!=web", False),
        ("app in (shop, web)", True),
        ("app in(web)", True),
        ("app in (shop)", False),
        ("app notin (shop,db)", True),
        ("tier", True),
        ("other", False),
        ("!other", True),
        ("!tier", False),
        ("app=web,tier in (front,back),!other", True),
        ("app=web,tier in (back)", False),
        ("tier=", False),
        ("example.com/team!=a", True),
        ("in", False),
    ],
)
def test_a_written_selector(text: str, expected: bool) -> None:  # noqa: FBT001 - the case
    assert parse_selector(text).matches({"app": "web", "tier": "front"}) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "app=web,",
        "app=web tier=a",
        "app in web",
        "app in ()",
        "app in (a",
        "app)",
        "a>1",
        "=web",
        "!",
        "app=-",
        "a=b=c",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_selector(text)
    assert caught.value.hint == "write parts such as app=web, tier in (a,b), !legacy, with commas between"


def test_a_long_text_is_read_at_once_and_shown_in_part() -> None:
    with pytest.raises(Invalid) as caught:
        parse_selector("," * 500_000 + "(")
    assert len(caught.value.message) < 100
    assert len(parse_selector(f"app in ({','.join(['web'] * 100_000)})").expressions) == 1
