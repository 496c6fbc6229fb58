"""`headroom init`: scaffolds a capacity repository."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from reconciler.model.errors import Invalid

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _label(_ctx: click.Context, _param: click.Parameter, name: str) -> str:
    """The name becomes a folder: a DNS label is never a path."""
    if not _DNS_LABEL.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is not a valid cluster name: use up to 63 of a-z, 0-9 and '-', such as west-1."
        )
    return name


class _Init(click.Command):
    """`headroom init schedule …` is a command of its own; `headroom init ./schedule` is a folder all the same."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == ["schedule"]:
            from reconciler.cli.init_schedule import command as schedule  # noqa: PLC0415 - only where it is called

            return schedule.make_context("init schedule", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("init", cls=_Init, short_help="Scaffold a capacity repository.")
@click.argument("folder", default=".")
@click.option(
    "--name", "cluster", default="production", show_default=True, callback=_label, help="The first cluster's folder."
)
@click.option(
    "--example", is_flag=True, help="Write the whole example repository instead: two clusters and a snapshot of each."
)
def command(*, folder: str, cluster: str, example: bool) -> int:
    """Write a small capacity repository to FOLDER (default: here). Existing files are never overwritten.

    `headroom init schedule` writes a capacity schedule instead (a folder of that name: ./schedule).

    \b
        headroom init capacity && cd capacity && git init && headroom validate
        headroom init schedule --window "mon-fri 9-17" --replicas 3 --default 1 --timezone Europe/Berlin
    """
    from reconciler.packaged import packaged_tree  # noqa: PLC0415 - only for this command

    source = "examples-repo" if example else "config/scaffold"
    files = {path.replace("CLUSTER", cluster): text for path, text in packaged_tree(source).items()}
    if not example:
        from reconciler.manifests.editor_schema import EDITOR_LINE, SCHEMA_FILE, editor_schema  # noqa: PLC0415 - likewise

        files = {path: EDITOR_LINE + text if path.endswith(".yaml") else text for path, text in files.items()}
        files[SCHEMA_FILE] = json.dumps(editor_schema(), indent=2) + "\n"
    target = Path(folder)
    place = target
    try:
        taken = [path for path in files if (target / path).exists()]
        if taken:
            raise Invalid(f"{target / taken[0]} already exists", hint="name another folder, or move the file away")
        for path, text in files.items():
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text.replace("CLUSTER", cluster), encoding="utf-8")
            click.echo(f"  {place}")
    except OSError as error:
        raise Invalid(
            f"{place}: cannot be written ({error.strerror})", hint="name a folder that you can write to"
        ) from error
    where = "production" if example else cluster
    snapshot = ":snapshots/production" if example else ""
    click.echo(f"Wrote {len(files)} files. Next, in {target}: headroom validate, then")
    click.echo(f"  headroom plan --path clusters/{where} --cluster embedded{snapshot}")
    return 0
