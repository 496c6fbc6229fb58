"""The `headroom` group: knows each command's name and one line of help, imports it when it is called. And the exit codes of all commands,
which its help states: plan and diff follow kubectl diff, or with `--detailed-exitcode` Terraform."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from reconciler import __version__

COMMANDS = {
    "run": ("apply", "The daemon: keep the cluster as the repository declares."),
    "plan": ("plan", "What one pass would change."),
    "apply": ("apply", "One pass, applied."),
    "diff": ("diff", "What merging BASE..HEAD would change."),
    "validate": ("validate", "Check manifests; works with no cluster."),
    "schedule": ("schedule", "The value of each capacity schedule, now and over time."),
    "budgets": ("budgets", "Disruptions allowed by NodePool and reason, now and hour by hour."),
    "explain": ("plan", "Where each chunk of a demand landed, or why it did not."),
    "status": ("status", "How buffers and nodes are."),
    "snapshot": ("status", "Capture a cluster for offline planning."),
    "release": ("apply", "Hand every held node back, before headroom is removed."),
    "crd": ("schema", "Print headroom's CustomResourceDefinitions."),
    "init": ("init", "Scaffold a capacity repository."),
    "schema": ("schema", "Print the JSON Schema of an output."),
}
"""By name: the file of this folder where its function stands, such as `plan_command`, and one line of help."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        file, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"reconciler.cli.{file}"), f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            params = error.ctx.command.params if error.ctx and "unexpected extra argument" in error.message else []
            takes_folders = any(isinstance(each, click.Argument) for each in params)
            if "path" in {each.name for each in params} and not takes_folders:
                raise click.UsageError(f"{error.message}. A folder is named with --path.", error.ctx) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])


def _version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - as click calls it
    if value and not ctx.resilient_parsing:
        from reconciler.zone_data import zone_data

        click.echo(f"headroom, version {__version__}\ntime zone data {zone_data()}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def application() -> None:
    """Keep the Kubernetes node capacity that a Git repository declares.

    Declare capacity buffers, provisioning requests, NodePools and schedules in Git. headroom keeps the nodes ready on Karpenter,
    and says on a pull request what merging would change and cost.

    \b
    Exit codes:
      plan, diff   0 no change, 1 changes, 2 any error; diff also 3 for a bound that is not kept
                   with --detailed-exitcode: 0 no change, 2 changes, 1 any error or such a bound
      all others   0 done, 1 a failure, 2 wrong usage
                   validate, budgets and schedule: 1 also for an error in the manifests
    A cluster that is not there or does not answer is an error or a failure, not wrong usage.
    Ctrl-C is 130; the daemon ends with 0 then. Where the reader of the output goes (headroom plan | head) it is 141.
    """


CHANGES, ERROR, GATE = 1, 2, 3
DETAILED_CHANGES, DETAILED_ERROR = 2, 1
FAILURE, USAGE = 1, 2
INTERRUPTED, READER_GONE = 130, 141
DIFFERENCE_COMMANDS = frozenset({"plan", "diff"})
DETAILED_FLAG = "--detailed-exitcode"


def exit_code_of_changes(*, changes: bool, detailed: bool) -> int:
    """The exit code of plan and diff when they succeed."""
    if not changes:
        return 0
    return DETAILED_CHANGES if detailed else CHANGES


def exit_code_of(words: Sequence[str], *, usage: bool) -> int:
    """The exit code of a failed command line."""
    command = next((word for word in words if not word.startswith("-")), "")
    if command in DIFFERENCE_COMMANDS:
        return DETAILED_ERROR if DETAILED_FLAG in words else ERROR
    return USAGE if usage else FAILURE
