"""`--post`: what `headroom diff` posts on the pull request, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from reconciler.model.errors import FORBIDDEN, Failure, Stalled, Transient
from reconciler.model.refs import listed
from reconciler.settings.settings import Settings

if TYPE_CHECKING:
    from reconciler.forge.pull_requests import Published
    from reconciler.wiring.posting import PullRequestReport

_WORDS = {
    "created": "a comment was made",
    "updated": "the comment was updated",
    "unchanged": "the comment is already up to date",
    "stale": "nothing was posted, since a newer run or commit is there,",
    "skipped": "too little changes, so that no comment was made",
}


def check_post_options(context: click.Context) -> None:
    """Raises `click.UsageError` for flags without an effect unless --post is given."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in ("post_mode", "pull_request", "skip_no_diff", "post_above")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if context.params["post"] is None and given:
        verb = "does" if len(given) == 1 else "do"
        raise click.UsageError(f"{', '.join(given)} {verb} nothing without --post: add it, such as --post github.")


@contextmanager
def posting(values: Mapping[str, Any], settings: Settings) -> Iterator[PullRequestReport | None]:
    """The report to post; None without --post. It is opened before planning, so that a missing token is told at once. values: the
    command's parameters by name. A failure inside the block is reported on the commit too."""
    if values["post"] is None:
        yield None
        return
    from reconciler.forge.pull_requests import Mode
    from reconciler.wiring.posting import pull_request_of

    with pull_request_of(
        values["post"],
        values["pull_request"],
        settings,
        page=values["page"] or "",
        mode=Mode(values["post_mode"]),
        above=values["post_above"] or 0.0,
        unchanged_too=not values["skip_no_diff"],
    ) as report:
        try:
            yield report
        except Failure as failure:
            report.failed(failure)
            raise


def tell(report: PullRequestReport, published: Published) -> Failure | None:
    """Says on stderr what was posted. Returns the failure for which the command fails; None if there is none."""
    where = f"on {report.forge.name} pull request {report.number}"
    failure = published.failure
    comment = [] if published.comment is None else [_WORDS[published.comment.value]]
    if failure is None:
        click.echo(f"headroom: {listed(comment)} {where}", err=True)
        return None
    if not published.nothing:
        status = ["the status was set"] if published.status else []
        done = [*status, *comment, *(["lines were annotated"] if published.annotated else [])]
        click.echo(f"headroom: {listed(done)} {where}; not all was posted", err=True)
        return failure
    unsure = published.tried and isinstance(failure, Transient)
    click.echo(f"headroom: {'perhaps nothing' if unsure else 'nothing'} was posted {where}", err=True)
    if not isinstance(failure, Stalled) or failure.reason != FORBIDDEN:
        return failure
    # The tokens of Dependabot's jobs may only read. That is no fault of the change, and the report is printed.
    click.echo(f"headroom: {failure.with_hint}", err=True)
    return None
