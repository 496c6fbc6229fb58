"""`headroom diff BASE..HEAD`: what merging would change, for people and for pull requests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from reconciler.cli.exit_codes import exit_code_of_changes
from reconciler.cli.options import options, output_option, settings_from
from reconciler.cli.posting import PostOptions, post_options, posting
from reconciler.cli.progress import Progress
from reconciler.model.errors import Failure


@click.command("diff", short_help="What merging BASE..HEAD would change.")
@click.argument("revisions", metavar="BASE..HEAD")
@options("repo", "path", "cluster", "catalog", "dialect", "now", "config", "timings", "detailed_exitcode")
@output_option("text", "json", "markdown", "html")
@post_options
def command(
    *,
    revisions: str,
    output: str,
    now: datetime | None,
    timings: str | None,
    detailed_exitcode: bool,
    **values: Any,
) -> int:
    """Plan both revisions on the same cluster and show how the plans differ.

    Without HEAD ("main..") the working tree is compared. Exits 0 for no difference, 1 for a difference, 2 on an error;
    findings do not change the exit code.

    \b
        headroom diff main..my-branch --path clusters/production --output markdown
        headroom diff origin/main..HEAD --post github
    """
    from reconciler.cli.planning import (  # noqa: PLC0415 - heavy, and only for this command
        difference_values,
        print_difference,
        write_timings,
    )
    from reconciler.clocks import SystemClock  # noqa: PLC0415 - likewise
    from reconciler.report.difference.difference import difference  # noqa: PLC0415 - likewise
    from reconciler.wiring.session import open_session  # noqa: PLC0415 - likewise

    base, separator, head = revisions.partition("..")
    if not separator or not base or head.startswith("."):
        raise click.UsageError(f"{revisions!r} is not BASE..HEAD: write two revisions, such as main..my-branch.")
    settings = settings_from(values)
    now = now or SystemClock().now()  # one instant for both sides, so that time alone makes no difference
    plans = []
    outlooks = []
    seconds: dict[str, float] = {}
    with posting(PostOptions.of(values), settings) as poster:
        with Progress() as progress, open_session(settings, now=now, progress=progress) as session:
            cluster = session.cluster.name
            for revision in (base, head):
                progress("git")
                tree = session.tree_at(revision or None)
                result = session.cycle.plan(tree=tree)
                if result.failure is not None:
                    raise _at(revision, result.failure)
                plans.append(result.required_plan)
                outlooks.append(session.cycle.outlook)
                for stage, taken in result.timings.items():
                    seconds[stage] = seconds.get(stage, 0.0) + taken
        change = difference(plans[0], plans[1])
        before, after = outlooks
        ahead = None if before is None or after is None else (before, after)
        print_difference(change, output, cluster=cluster, outlooks=ahead)
        if poster is not None:
            poster.post(change, difference_values(change, cluster=cluster, outlooks=ahead), now)
    if timings:
        write_timings(timings, seconds)
    return exit_code_of_changes(changes=change.has_changes, detailed=detailed_exitcode)


def _at(revision: str, failure: Failure) -> Failure:
    failure.message = f"at {revision or 'the working tree'}: {failure.message}"
    return failure
