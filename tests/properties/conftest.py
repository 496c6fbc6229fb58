"""Whatever renders here does so in one process."""

from tests.fakes.rendering import one_render_process

__all__ = ["one_render_process"]
