"""The files of tests/cases: lists of cases that a domain expert could have written, most of them with a name and a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

Case = Mapping[str, Any]
_FOLDER = Path(__file__).with_name("cases")


def cases_in(file: str, *kinds: str) -> list[Case]:
    """Of these kinds, or of all."""
    found: list[Case] = yaml.load((_FOLDER / file).read_bytes(), Loader=yaml.CSafeLoader)
    return [case for case in found if not kinds or case["kind"] in kinds]


def for_each(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """The test is run with each as `case`."""
    return pytest.mark.parametrize("case", cases, ids=[str(case["name"]) for case in cases])
