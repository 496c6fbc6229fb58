"""`headroom schema NAME`: prints the JSON Schema of one of the JSON outputs."""

from __future__ import annotations

from importlib.resources import files

import click

_FOLDER = files("reconciler.report") / "schemas"
_SUFFIX = ".json"


def schema_names() -> list[str]:
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in _FOLDER.iterdir() if entry.name.endswith(_SUFFIX))


@click.command("schema", short_help="Print the JSON Schema of an output.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print the JSON Schema of an output, such as plan.v1. Without NAME, list the schemas."""
    if name is None:
        click.echo("\n".join(schema_names()))
        return
    if name not in schema_names():
        raise click.UsageError(f"There is no schema {name!r}; there are {', '.join(schema_names())}.")
    click.echo((_FOLDER / f"{name}{_SUFFIX}").read_text(encoding="utf-8"), nl=False)
