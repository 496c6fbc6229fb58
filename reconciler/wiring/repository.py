"""The repository that the settings name."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from reconciler.clocks import FixedClock
from reconciler.model.source import SourceTree
from reconciler.ports import Clock, Source
from reconciler.settings.settings import Settings

if TYPE_CHECKING:
    from reconciler.daemon.ending import Watchdog
    from reconciler.source.commands import GitOptions
    from reconciler.source.state import LatestTree


def open_source(settings: Settings, clock: Clock, reader: str = "") -> Source:
    """reader: as in `GitOptions`."""
    from reconciler.source.opening import open_source as opened

    return opened(
        settings.repository or ".",
        clock=clock,
        revision=settings.revision or None,
        subdirectory=settings.path,
        options=git_options(settings, reader),
    )


def latest_tree(settings: Settings, clock: Clock, watchdog: Watchdog, reader: str) -> LatestTree:
    """The repository as a daemon polls it. Which passes end is remembered beside its clone. reader: as in `GitOptions`."""
    from reconciler.source.git import GitSource
    from reconciler.source.state import LatestTree

    source = open_source(settings, clock, reader)
    passes = source.passes if isinstance(source, GitSource) else None
    tree = LatestTree(source, progress=watchdog.git_progress, passes=passes)
    watchdog.on_stuck = tree.stuck
    return tree


def repository_tree(settings: Settings, now: datetime) -> SourceTree:
    """The tree that the settings name, for a command that needs no cluster. Raises as `tree_at`."""
    from reconciler.source.opening import tree_at

    return tree_at(
        settings.repository or ".",
        settings.revision or None,
        settings.path,
        clock=FixedClock(now),
        options=git_options(settings),
    )


def git_options(settings: Settings, reader: str = "") -> GitOptions:
    from reconciler.source.commands import GitOptions
    from reconciler.source.credentials import Credentials

    git = settings.git
    return GitOptions(
        credentials=Credentials(git.username, git.token_file, git.ssh_key, git.known_hosts, plain_http=git.plain_http),
        state=git.state,
        allowed_signers=git.allowed_signers,
        timeout=git.timeout,
        rewind_hold=git.rewind_hold,
        templates=settings.templates,
        reader=reader,
        heard_for=git.interval / 2,
    )
