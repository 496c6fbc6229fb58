"""`--post`: what `headroom diff` posts on the pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from reconciler.cli.options import Amount
from reconciler.forge import FORGES
from reconciler.model.errors import FORBIDDEN, Failure, Stalled
from reconciler.settings.settings import Settings

if TYPE_CHECKING:
    from reconciler.comparison import Comparison
    from reconciler.report.difference.difference import Difference
    from reconciler.wiring.inputs import ReportedCluster
    from reconciler.wiring.posting import PullRequestTarget

F = TypeVar("F", bound=Callable[..., Any])
_WORDS = {
    "created": "a comment was made on",
    "updated": "the comment was updated on",
    "unchanged": "the comment is already up to date on",
    "stale": "nothing was posted, since a newer run or commit is there, on",
    "skipped": "too little changes, so that no comment was made on",
}


@dataclass(frozen=True, slots=True)
class PostOptions:
    """post: the forge, None for none. number: the pull request's, None if CI tells it. post_above: USD over 30 days."""

    post: str | None
    mode: str
    number: int | None
    skip_no_diff: bool
    post_above: float | None

    @classmethod
    def of(cls, context: click.Context, values: Mapping[str, Any]) -> PostOptions:
        """values: the command's parameters by name. Raises `click.UsageError` for flags without an effect unless --post is given."""
        given = [
            f"--{name.replace('_', '-')}"
            for name in ("post_mode", "pull_request", "skip_no_diff", "post_above")
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        ]
        if values["post"] is None and given:
            verb = "does" if len(given) == 1 else "do"
            raise click.UsageError(f"{', '.join(given)} {verb} nothing without --post: add it, such as --post github.")
        return cls(*(values[name] for name in ("post", "post_mode", "pull_request", "skip_no_diff", "post_above")))


def post_options(function: F) -> F:
    """The flags, as parameters `post`, `post_mode`, `pull_request`, `skip_no_diff` and `post_above`."""
    for option in reversed(
        (
            click.option(
                "--post",
                type=click.Choice(FORGES),
                help="Also post it on the pull request: comment, status, remarks beside lines.",
            ),
            click.option(
                "--post-mode",
                type=click.Choice(["update", "new", "hide-and-new", "delete-and-new"]),
                default="update",
                show_default=True,
                help="What becomes of the comment of an earlier run.",
            ),
            click.option(
                "--pull-request",
                metavar="NUMBER",
                type=click.IntRange(min=1),
                help="Post on this one. Default: the one that CI runs for.",
            ),
            click.option(
                "--skip-no-diff/--no-skip-no-diff",
                default=True,
                help="Make no first comment where nothing changes. The default.",
            ),
            click.option(
                "--post-above",
                type=Amount(),
                metavar="USD",
                help="Make no first comment where nothing is lost or wrong and 30 days cost less than this more or less.",
            ),
        )
    ):
        function = option(function)
    return function


class Posting:
    """The destination of the report. It is made before planning, so that a missing token is reported at once.

    If the forge does not answer, that is reported last, so that the output still has the report.
    """

    def __init__(self, options: PostOptions, settings: Settings, destination: PullRequestTarget) -> None:
        self._options = options
        self._settings = settings
        self._destination = destination

    @property
    def from_fork(self) -> bool:
        """Whether its author may have no rights in the repository. True also if the forge does not say."""
        return self._destination.from_fork

    def post(self, comparison: Comparison, cluster: ReportedCluster, at: datetime, *, page: str) -> None:
        """Posts the report. at: the instant that both sides were planned for. page: the file of the complete report, "" for none. Raises the forge's failures, earlier ones too."""
        from reconciler.forge.pull_requests import Mode, publish
        from reconciler.wiring.posting import publication

        to = self._destination
        try:
            if to.refusal is not None:
                raise to.refusal
            outcome = publish(
                to.forge,
                to.number,
                publication(
                    comparison,
                    self._settings,
                    cluster=cluster,
                    at=at,
                    commit=to.head_commit,
                    url=to.url,
                    whole=to.page_at(page),
                ),
                Mode(self._options.mode),
                only_if_there=self._is_too_little(comparison.change),
            )
        except Failure as failure:
            click.echo(f"headroom: nothing was posted on {to.forge.name} pull request {to.number}", err=True)
            if not isinstance(failure, Stalled) or failure.reason != FORBIDDEN:
                raise
            # The tokens of Dependabot's jobs may only read. That is no fault of the change, and the report is printed.
            click.echo(f"headroom: {failure.message}", err=True)
            return
        click.echo(f"headroom: {_WORDS[outcome.value]} {to.forge.name} pull request {to.number}", err=True)

    def _is_too_little(self, change: Difference) -> bool:
        """Whether no first comment is to be made."""
        from reconciler.wiring.posting import is_too_little

        if not change.has_changes and not self._options.skip_no_diff:
            return False
        return is_too_little(change, self._options.post_above or 0.0)

    def failed(self, failure: Failure) -> None:
        """Reports on the commit that it could not be planned. The failure itself is printed in any case."""
        from reconciler.wiring.posting import failed

        to = self._destination
        if to.head_commit and to.refusal is None:
            with suppress(Failure):
                to.forge.set_status(to.head_commit, failed(failure, self._settings, to.url))


@contextmanager
def posting(options: PostOptions, settings: Settings) -> Iterator[Posting | None]:
    """The posting; None if nothing is to be posted. A failure inside the block is reported on the commit too."""
    if options.post is None:
        yield None
        return
    from reconciler.wiring.posting import destination

    with destination(options.post, options.number, settings) as target:
        made = Posting(options, settings, target)
        try:
            yield made
        except Failure as failure:
            made.failed(failure)
            raise
