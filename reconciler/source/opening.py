"""Chooses the kind of source for a repository."""

from __future__ import annotations

from pathlib import Path

from reconciler.model.errors import PATH_NOT_FOUND, Invalid, Stalled
from reconciler.model.source import SourceTree
from reconciler.ports import Clock, Source
from reconciler.source.credentials import is_remote
from reconciler.source.git_options import GitOptions
from reconciler.source.selection import Scope


def open_source(
    repository: str,
    *,
    clock: Clock,
    revision: str | None = None,
    subdirectory: str = "",
    options: GitOptions | None = None,
) -> Source:
    """A URL is polled at its revision or default branch. A folder's present files are read, unless a revision is named.

    A local bare repository is read at its HEAD. Raises `Stalled` for anything that is neither a folder nor a URL.
    """
    options = options or GitOptions()
    scope = Scope.of(subdirectory, options.templates)
    path = Path(repository)
    if not path.is_dir() and is_remote(repository):
        from reconciler.source.git import GitSource

        return GitSource(repository, clock=clock, revision=revision, scope=scope, options=options)
    if not path.is_dir():
        raise Stalled(
            f"repository {repository!r} is not a folder",
            reason=PATH_NOT_FOUND,
            hint="name a folder or a Git URL with --repo",
        )
    from reconciler.source.revision import LocalRevision, is_repository

    if not revision and is_repository(path):
        revision = "HEAD"
    if revision:
        return LocalRevision(
            path,
            revision,
            scope,
            clock=clock,
            timeout=options.timeout,
            rewind_hold=options.rewind_hold,
            allowed_signers=options.allowed_signers or None,
        )
    if options.allowed_signers:
        raise Invalid(
            f"{repository} is read as it stands, and files have no signatures",
            hint="name a revision with --revision, or leave git.allowedSigners empty",
        )
    from reconciler.source.worktree import WorkingTree

    return WorkingTree(path, subdirectory, templates=options.templates)


def tree_at(
    repository: str,
    revision: str | None,
    subdirectory: str = "",
    *,
    clock: Clock,
    options: GitOptions | None = None,
) -> SourceTree:
    """One tree of a repository, for comparisons. revision None: a folder's present files, or the default branch of a URL.

    Raises `Stalled` or `Invalid` if it cannot be read, since there is no last good one to fall back on.
    """
    source = open_source(repository, clock=clock, revision=revision, subdirectory=subdirectory, options=options)
    try:
        tree = source.read()
    finally:
        source.close()
    if tree.stalled is not None:
        raise Stalled(tree.stalled[1], reason=tree.stalled[0])
    return tree
