"""Whatever looks at pages here does so in one browser, and whatever needs an API server gets it without objects."""

from __future__ import annotations

import pytest

from tests.browser import browser
from tests.controlplane import ControlPlane

__all__ = ["browser"]


@pytest.fixture
def plane(empty_api_server: ControlPlane) -> ControlPlane:
    return empty_api_server
