"""Whatever looks at pages here does so in one browser."""

from tests.browser import browser

__all__ = ["browser"]
