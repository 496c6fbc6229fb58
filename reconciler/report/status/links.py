"""Links from what the daemon shows to the forge that has the repository."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.report.escaping import uri_path


@dataclass(frozen=True, slots=True)
class Links:
    """base: the repository's address in a browser, "" where it has none. forge: github, gitlab or gitea."""

    base: str = ""
    forge: str = ""

    def commit(self, revision: str | None) -> str | None:
        """The page of a revision (`main@sha1:` and 40 digits)."""
        commit = (revision or "").partition("@sha1:")[2]
        if not self.base or not commit:
            return None
        return f"{self.base}/-/commit/{commit}" if self.forge == "gitlab" else f"{self.base}/commit/{commit}"

    def line(self, revision: str | None, file: str | None, line: int | None) -> str | None:
        """The page of a file at a revision, at a line that is counted from 1."""
        commit = (revision or "").partition("@sha1:")[2]
        if not self.base or not commit or not file:
            return None
        folder = {"gitlab": "-/blob", "gitea": "src/commit"}.get(self.forge, "blob")
        return f"{self.base}/{folder}/{commit}/{uri_path(file)}" + (f"#L{line}" if line else "")
