"""Label selectors in the form in which a scale has them."""

from __future__ import annotations

import msgspec
import pytest

from reconciler.cluster.decoding.selectors import selector_from
from reconciler.manifests.pod_shape import selector_of
from reconciler.manifests.pod_spec_wire import LabelSelectorWire


def matches(text: str, **labels: str) -> bool:
    selector = selector_of(msgspec.convert(selector_from(text), LabelSelectorWire))
    assert selector is not None
    return selector.matches(labels)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app=shop", False),
        ("app!=shop", True),
        ("app!=web", False),
        ("app in (shop, web)", True),
        ("app in (shop)", False),
        ("app notin (shop,db)", True),
        ("tier", True),
        ("other", False),
        ("!other", True),
        ("!tier", False),
        ("app=web,tier in (front,back),!other", True),
        ("app=web,tier in (back)", False),
        ("tier=", False),
    ],
)
def test_a_written_selector(text: str, expected: bool) -> None:  # noqa: FBT001 - the case
    assert matches(text, app="web", tier="front") is expected
