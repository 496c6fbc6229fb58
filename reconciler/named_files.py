"""Files that a person named: in a flag, or on the command line."""

from __future__ import annotations

import errno
from pathlib import Path


def read_named_file(path: str | Path) -> bytes:
    """The file's content. Raises OSError, also for a named pipe: without a writer, opening it would wait forever.

    A pipe from a shell (`/dev/stdin`, `<(command)`) has a writer, and no path that it resolves to.
    """
    real = Path(path).resolve()
    if real.is_fifo():
        raise OSError(errno.EINVAL, "it is a named pipe", str(path))
    return Path(path).read_bytes()
