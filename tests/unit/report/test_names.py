"""Names that are given in part."""

from __future__ import annotations

import pytest

from reconciler.report.explanation import matching, near_words

NAMES = (
    "CapacityBuffer/shop/web",
    "CapacityBuffer/shop/web-canary",
    "CapacityBuffer/shop/checkout",
    "ProvisioningRequest/ml/ci-runners",
    "NodePool/general",
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("CapacityBuffer/shop/web", ["CapacityBuffer/shop/web"]),
        ("web", ["CapacityBuffer/shop/web"]),
        ("shop/web", ["CapacityBuffer/shop/web"]),
        ("CapacityBuffer/web", ["CapacityBuffer/shop/web"]),
        ("we", ["CapacityBuffer/shop/web", "CapacityBuffer/shop/web-canary"]),
        ("canary", ["CapacityBuffer/shop/web-canary"]),
        ("ci-run", ["ProvisioningRequest/ml/ci-runners"]),
        ("shop/check", ["CapacityBuffer/shop/checkout"]),
        ("NodePool/gen", ["NodePool/general"]),
        ("ml", ["ProvisioningRequest/ml/ci-runners"]),
        ("web/shop", []),
        ("CapacityBuffer/shop/che", []),  # a whole name means one object
        ("", []),
        ("shop/", []),
    ],
)
def test_the_best_fit_counts(wanted: str, found: list[str]) -> None:
    assert matching(wanted, NAMES) == found


def test_near_names_are_hinted_at() -> None:
    assert near_words("chekout", NAMES) == "did you mean CapacityBuffer/shop/checkout?"
    assert near_words("CapacityBuffer/shop/che", NAMES) == "did you mean CapacityBuffer/shop/checkout?"
    assert near_words("zzz", NAMES) == ""
    many = [f"CapacityBuffer/shop/web-{number}" for number in range(12)]
    assert near_words("web-", many).endswith("web-4? (or one of 7 more)")
