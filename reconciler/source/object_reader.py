"""Reads single objects from a repository's database, each within a time limit, even if the database is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from time import monotonic
from types import TracebackType
from typing import Self

from reconciler.source.child import Child, OutOfTimeError, OutputTooLongError
from reconciler.source.commands import CommandFailedError, Commands

_LONGEST_LINE = 2**18
"""In bytes, including what was read beyond the line."""
_Read = Callable[[Child, float], bytes | None]


class ObjectReader:
    """One `git cat-file` for sizes and one for contents, both started when first asked. Not thread-safe.

    Every failure is a CommandFailedError, after which the reader cannot be used.
    """

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._running = ExitStack()
        self._children: dict[str, Child] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def head(self, name: str) -> tuple[str, int]:
        """An object's type (blob, tree, commit, tag) and its length in bytes. name: any that git understands."""
        return self.heads([name])[0]

    def heads(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """The same for many objects at once, since waiting for each answer before the next question would take most of the time."""
        self._ask("--batch-check", names)
        return [self._head("--batch-check") for _ in names]

    def content(self, name: str) -> bytes:
        """The whole object. The caller has checked its length before."""
        return next(self.contents([name]))

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """The contents of many objects, in order. All of them must be consumed before another call."""
        self._ask("--batch", names)
        for _ in names:
            _, length = self._head("--batch")
            body = self._answer("--batch", lambda child, deadline, length=length: child.exactly(length + 1, deadline))  # type: ignore[misc]
            yield body[:length]

    def _ask(self, mode: str, names: Sequence[str]) -> None:
        if mode not in self._children:
            self._children[mode] = self._running.enter_context(self._commands.started("cat-file", mode, feed=True))
        self._children[mode].write("".join(f"{name}\n" for name in names).encode())

    def _head(self, mode: str) -> tuple[str, int]:
        line = self._answer(mode, lambda child, deadline: child.line(deadline, _LONGEST_LINE)).decode(errors="replace")
        match line.split(" "):
            case [_, kind, length] if length.isdigit():
                return kind, int(length)
            case _:
                raise CommandFailedError("cat-file", 0, f"fatal: {line}")

    def _answer(self, mode: str, read: _Read) -> bytes:
        child = self._children[mode]
        deadline = monotonic() + self._commands.timeout
        try:
            answer = read(child, deadline)
        except OutOfTimeError as error:
            raise CommandFailedError("cat-file", -1, "", timeout=self._commands.exceeded(deadline)) from error
        except OutputTooLongError as error:
            raise CommandFailedError("cat-file", -1, "fatal: its answer is too long") from error
        if answer is None:
            raise self._commands.failure("cat-file", -1, child.errors)
        return answer
