"""The files of a repository after merging each of its pull requests. One clone serves all of them."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from reconciler.model.errors import Stalled
from reconciler.model.source import PullRequest
from reconciler.source.commands import OPERATION_FAILED, GitOptions
from reconciler.source.merging import Revisions, Sides, sides_in
from reconciler.source.selection import Scope


class PullRequestTrees:
    """url: the target repository of the pull requests, from which their heads can be fetched. For use by one thread."""

    def __init__(self, url: str, subdirectory: str, options: GitOptions) -> None:
        self._url = url
        self._scope = Scope.of(subdirectory, options.templates)
        self._options = options
        key = hashlib.sha256(url.encode()).hexdigest()[:16]
        self._temporary = None if options.state else Path(tempfile.mkdtemp(prefix="headroom-git-"))
        self._folder = (self._temporary or Path(options.state)) / f"pull-requests-{key}"

    def sides(self, pull: PullRequest) -> Sides:
        """The base and the merge. Raises `Stalled`; a clone that cannot be used is made again next time."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            sides = sides_in(
                self._folder, self._url, Revisions(pull.base_branch, pull.head_ref), self._scope, self._options
            )
        except Stalled as failure:
            if failure.reason == OPERATION_FAILED:
                shutil.rmtree(self._folder, ignore_errors=True)
            raise
        _, _, commit = (sides.head.revision or "").partition("@")
        # Readers know the branch's name, not the forge's reference, which is a number.
        return replace(sides, head=replace(sides.head, revision=f"{pull.head_branch}@{commit}"))

    def close(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
