"""A repository that tests commit to and push from, with the real git."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Self, TypeAlias

Files: TypeAlias = Mapping[str, str | None]
"""Texts by name; None deletes one."""
_PERSON = {
    "GIT_AUTHOR_NAME": "Anna",
    "GIT_AUTHOR_EMAIL": "anna@example.com",
    "GIT_COMMITTER_NAME": "Anna",
    "GIT_COMMITTER_EMAIL": "anna@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
_NO_UPKEEP = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n"


class GitRepository:
    """A working tree in `folder/work` and a bare remote in `folder/served/capacity.git` that it is pushed to.

    Commits are a minute apart, as people's are, and have the same names in every run.
    """

    def __init__(self, folder: Path, *, filters: bool = True) -> None:
        self._folder = folder
        self._minutes = 0
        self.remote.mkdir(parents=True)
        # No upkeep, for which each commit and push would start processes.
        settings = f"[uploadpack]\n\tallowFilter = {str(filters).lower()}\n{_NO_UPKEEP}"
        for kept, words, text in ((self.remote, ["--bare"], settings), (self.work, [], _NO_UPKEEP)):
            self.git("init", "--quiet", "--template=", "--initial-branch=main", *words, str(kept), at=folder)
            with (kept / ("config" if words else ".git/config")).open("a") as file:
                file.write(text)

    def copied_to(self, folder: Path) -> Self:
        """The same history elsewhere: cheaper than to commit it once more."""
        for kept in ("work", "served"):
            shutil.copytree(self._folder / kept, folder / kept)
        made = copy(self)
        made._folder = folder
        return made

    @property
    def work(self) -> Path:
        return self._folder / "work"

    @property
    def served(self) -> Path:
        return self._folder / "served"

    @property
    def remote(self) -> Path:
        return self.served / "capacity.git"

    @property
    def url(self) -> str:
        return f"file://{self.remote}"

    def git(
        self, *arguments: str, at: Path | None = None, environment: Mapping[str, str] | None = None, given: str = ""
    ) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.work,
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
                **_PERSON,
                "GIT_AUTHOR_DATE": self._date,
                "GIT_COMMITTER_DATE": self._date,
                **(environment or {}),
            },
            input=given or None,
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, files: Files) -> None:
        for name, content in files.items():
            path = self.work / name
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)

    def commit(self, files: Files | None = None, *options: str) -> str:
        """Writes the files, commits everything and returns the commit's name."""
        self.write(files or {})
        self._minutes += 1
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", f"--message=Change {self._minutes}", *options)
        return self._head()

    def commit_each(self, changes: Iterable[Mapping[str, str]]) -> None:
        """A commit for each of these, as `commit` makes them, all by one process."""
        branch = self._kept("HEAD").removeprefix("ref: ")
        lines = []
        for number, files in enumerate(changes):
            self._minutes += 1
            lines += [f"commit {branch}", f"committer Anna <anna@example.com> {self._date}"]
            lines += [_data(f"Change {self._minutes}\n"), *([] if number else [f"from {branch}^0"])]
            for name, content in files.items():
                lines += [f"M 100644 inline {name}", _data(content)]
        self.git("fast-import", "--quiet", "--date-format=raw", given="\n".join([*lines, ""]))
        self.git("reset", "--quiet", "--hard")

    @property
    def _date(self) -> str:
        return f"{1_790_000_000 + 60 * self._minutes} +0000"

    def _head(self) -> str:
        """The commit that is checked out, without a process that says so."""
        head = self._kept("HEAD")
        return self._kept(head.removeprefix("ref: ")) if head.startswith("ref: ") else head

    def _kept(self, name: str) -> str:
        return (self.work / ".git" / name).read_text().strip()

    def push(self, files: Files | None = None, *options: str) -> str:
        """Commits and pushes; `--force` rewrites what the remote had."""
        commit = self.commit(files)
        self.git("push", "--quiet", *options, str(self.remote), "HEAD")
        return commit

    def backdate_by(self, minutes: int) -> None:
        self._minutes -= minutes


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"
