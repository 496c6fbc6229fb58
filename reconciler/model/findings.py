"""A finding: a diagnosed problem in a manifest. Made by manifests and demand, printed by report, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.refs import ObjectRef, SourcePosition


class Severity(StrEnum):
    """error: the API server would refuse it and we do not translate it, or it cannot be carried out; warning: it will
    not do what it seems to; info: worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Code:
    """A finding's code: stable, with one severity and one page in docs/findings."""

    name: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Finding:
    """code: stable kebab-case, one docs page each (`docs/findings/CODE.md`); path: the field, as
    `spec.disruption.budgets[0].nodes`; hint: what to write instead."""

    code: str
    severity: Severity
    message: str
    position: SourcePosition | None = None
    ref: ObjectRef | None = None
    path: str = ""
    hint: str = ""

    @property
    def sort_key(self) -> tuple[str, int, int, str, str, str]:
        """A total order: by place in the files, then by what is said."""
        where = self.position or SourcePosition("", 0, 0)
        return (where.file, where.line, where.column, self.path, self.code, self.message)
