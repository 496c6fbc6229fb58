"""A Git repository of manifests that e2e tests push commits to."""

from __future__ import annotations

import subprocess
from pathlib import Path

IDENTITY = ["-c", "user.name=e2e", "-c", "user.email=e2e@example.invalid", "-c", "commit.gpgsign=false"]


class CapacityRepository:
    """Made empty; `push` writes files and commits them to `main`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")
        self.push({"README.md": "The capacity of one cluster.\n"})

    def push(self, files: dict[str, str | None]) -> str:
        """Commit these files (None deletes one) and return the commit."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", "Change capacity")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.folder), *IDENTITY, *words], check=True, capture_output=True, text=True
        )
        return done.stdout
