"""The `headroom` command: runs the command line and turns every failure into one line and an exit code."""

from __future__ import annotations

import errno
import gc
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import click

from reconciler.cli.application import INTERRUPTED, READER_GONE, application, exit_code_of
from reconciler.model.errors import PATH_NOT_FOUND, Failure, Misused, Stalled
from reconciler.report.escaping import terminal, without_url_secrets

_NO_MORE_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Errors of a write to standard output. Errors of files name the file, and are reported by their writers."""


def collect_rarely() -> None:
    """Makes garbage collection rare. By default Python looks for garbage after every 700 new objects. A pass makes hundreds of
    thousands that live as long as the pass, and looking through them in vain took a fifth of its time."""
    gc.set_threshold(50_000, 20, 20)


def _write_utf_8() -> None:
    """In UTF-8 whatever the locale, as kubectl and git write: Latin-1 has no arrow, and a report is for others to read too."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding != "utf-8":
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the console script; never returns. No failure ever shows a traceback unless HEADROOM_DEBUG is set."""
    words = sys.argv[1:] if arguments is None else arguments
    collect_rarely()
    _write_utf_8()
    try:
        sys.exit(_exit_code_after(words))
    except BrokenPipeError:
        # The reader (head, a pager) has gone. Python must not complain about that at exit.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            _let_go_of(stream)
        sys.exit(READER_GONE)


def _exit_code_after(words: list[str]) -> int:
    """Runs the command; failures are told."""
    if sys.stdout is None:
        # The caller closed it (`>&-`). Nothing may run, since the first file to be opened would get its descriptor.
        click.echo("headroom: there is no standard output to write to: it is closed", err=True)
        return exit_code_of(words, usage=False)
    try:
        return _run(words)
    except click.exceptions.Abort:
        click.echo("headroom: interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return exit_code_of(words, usage=True)
    except Failure as failure:
        _tell(failure)
        # A path that does not exist is wrong usage, not a failure.
        not_there = isinstance(failure, Stalled) and failure.reason == PATH_NOT_FOUND
        return exit_code_of(words, usage=not_there or isinstance(failure, Misused))
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - nobody but the user is left to hear of it
        return _tell_of(error, words)


def _run(words: list[str]) -> int:
    """Not by click's `main`: it ends with 1 when the reader of the output has gone, and of plan and diff 1 says "changes"."""
    name = _called()
    if "_HEADROOM_COMPLETE" in os.environ:  # set by a shell that completes what is typed
        application.main(words, name)
    try:
        with application.make_context(name, list(words)) as context:
            result = application.invoke(context)
    except click.exceptions.Exit as left:
        return left.exit_code
    except (KeyboardInterrupt, EOFError) as interrupted:
        click.echo(err=True)  # ends the line of the terminal's ^C
        raise click.exceptions.Abort from interrupted
    return result if isinstance(result, int) else 0


def _called() -> str:
    """What the user typed, for usage lines: kubectl runs its plugin `kubectl-headroom` for `kubectl headroom`."""
    return "kubectl headroom" if Path(sys.argv[0]).name == "kubectl-headroom" else "headroom"


def _let_go_of(stream: TextIO) -> None:
    """Discards what could not be written, so that Python does not try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _tell_of(error: Exception, words: list[str]) -> int:
    """Says what an error that no code expected means to the user, and returns the exit code."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _NO_MORE_ROOM:
        click.echo(f"headroom: the output cannot be written: {error.strerror}", err=True)
        _let_go_of(sys.stdout)
        return exit_code_of(words, usage=False)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = str(error.filename or "")
        click.echo(_told(f"headroom: {name[:60]}… is not a path: it has {len(name):,} characters"), err=True)
        return exit_code_of(words, usage=True)
    if os.environ.get("HEADROOM_DEBUG"):
        raise error
    click.echo(_told(f"headroom: internal error: {type(error).__name__}: {error}"), err=True)
    click.echo("  this is a defect; run again with HEADROOM_DEBUG=1 and report what it prints", err=True)
    return exit_code_of(words, usage=False)


def _told(line: str) -> str:
    return terminal(without_url_secrets(line))


def _tell(failure: Failure) -> None:
    click.echo(_told(f"headroom: {failure.message}"), err=True)
    for cause in failure.causes:
        click.echo(_told(f"  because {cause}"), err=True)
    if failure.hint:
        click.echo(_told(f"  {failure.hint}"), err=True)


if __name__ == "__main__":
    main()
