"""A finding: a diagnosed problem in a manifest, never an exception."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from posixpath import join, normpath

from reconciler.model.refs import ObjectRef, SourcePosition


class Severity(StrEnum):
    """error: the API server would refuse it, or it cannot be carried out. warning: it does something other than it seems to.
    info: worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


HELP_PAGES = "https://headroom.dev/findings"
"""The address that docs/findings is published under."""


def help_page(code: str) -> str:
    """The address of a code's page."""
    return f"{HELP_PAGES}/{code}"


LONGEST_TEXT = 1000
"""The longest text, in characters. A finding may quote a line that is a megabyte long."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, in words that can be read alone. Texts that are too long are cut."""

    code: str
    """Stable, in kebab-case; its page is `docs/findings/CODE.md`."""
    severity: Severity
    message: str
    """One sentence without a full stop."""
    position: SourcePosition | None = None
    ref: ObjectRef | None = None
    path: str = ""
    """The field, such as `spec.disruption.budgets[0].nodes`."""
    hint: str = ""
    """What to write instead."""

    def __post_init__(self) -> None:
        for name in ("message", "path", "hint"):
            text: str = getattr(self, name)
            if len(text) > LONGEST_TEXT:
                object.__setattr__(self, name, f"{text[:LONGEST_TEXT]}…")

    @property
    def full_message(self) -> str:
        """The message after the object's name, where it is about one."""
        return f"{self.ref}: {self.message}" if self.ref else self.message

    def below(self, folder: str | None) -> Finding:
        """The same, of a file that is read from this folder: forges know files by their path in the whole repository."""
        if self.position is None or folder is None:
            return self
        return replace(self, position=replace(self.position, file=normpath(join(folder, self.position.file))))

    @property
    def sort_key(self) -> tuple[str, int, int, str, str, str]:
        """A total order: by position in the files, then by text."""
        where = self.position or SourcePosition("", 0, 0)
        return (where.file, where.line, where.column, self.path, self.code, self.message)


@dataclass(frozen=True, slots=True)
class Code:
    """A finding's code: stable, with one severity and one page in docs/findings."""

    name: str
    severity: Severity

    def finding(
        self,
        message: str,
        position: SourcePosition | None = None,
        ref: ObjectRef | None = None,
        path: str = "",
        hint: str = "",
    ) -> Finding:
        """A finding with this code."""
        return Finding(self.name, self.severity, message, position, ref, path, hint)
