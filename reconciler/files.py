"""Files: those that ship with the product (templates/, config/, examples-repo/), and those that a person named. And secrets, from a file or a variable.

In a checkout the former are beside the package, in a wheel inside it; callers need not know which.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from reconciler.model.errors import Stalled


def _root() -> Traversable:
    installed = files("reconciler") / "_data"
    return installed if installed.is_dir() else Path(__file__).resolve().parent.parent


def packaged_texts(folder: str, *, suffix: str = "") -> dict[str, str]:
    """Every file below a folder that ends so, by its path inside it, in path order."""

    def walk(place: Traversable, prefix: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in sorted(place.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir():
                found |= walk(entry, f"{prefix}{entry.name}/")
            elif entry.name.endswith(suffix):
                found[prefix + entry.name] = entry.read_text(encoding="utf-8")
        return found

    return walk(_root().joinpath(*folder.split("/")), "")


def read_named_file(path: str | Path) -> bytes:
    """The file's content. Raises OSError, also for a named pipe: without a writer, opening it would wait forever.

    A pipe from a shell (`/dev/stdin`, `<(command)`) has a writer, and no path that it resolves to.
    """
    real = Path(path).resolve()
    if real.is_fifo():
        raise OSError(errno.EINVAL, "it is a named pipe", str(path))
    return Path(path).read_bytes()


def read_secret(path: str, variables: Sequence[str], *, what: str, setting: str) -> str:
    """A token or secret, read again at each call: that in the file, or without a file in the first variable that has one; "" for none.

    what: "token" or "secret". setting: which names the file. Raises `Stalled` for a file that cannot be read.
    """
    if not path:
        return next((value for name in variables if (value := os.environ.get(name, "").strip())), "")
    try:
        return read_named_file(path).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise Stalled(
            f"{what} file {path} cannot be read ({why})",
            reason="AuthenticationFailed",
            hint=f"set {setting} to a file with the {what} alone",
        ) from error
