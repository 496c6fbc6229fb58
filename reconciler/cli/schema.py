"""`headroom schema NAME`: prints the JSON Schema of one of the JSON outputs."""

from __future__ import annotations

import json
from importlib.resources import files

import click

_FOLDER = files("reconciler.report") / "schemas"
_SUFFIX = ".json"
MANIFESTS = "manifests"


def schema_names() -> list[str]:
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in _FOLDER.iterdir() if entry.name.endswith(_SUFFIX))


@click.command("schema", short_help="Print the JSON Schema of an output, or of manifests.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print the JSON Schema of an output, such as plan.v1, or of all manifests (manifests). Without NAME, list the schemas.

    Editors complete and check manifests with the latter: headroom init writes it to .headroom/manifests.schema.json.

    \b
        headroom schema manifests > .headroom/manifests.schema.json
    """
    if name is None:
        click.echo("\n".join((*schema_names(), MANIFESTS)))
        return
    if name == MANIFESTS:
        from reconciler.manifests.crds import editor_schema

        click.echo(json.dumps(editor_schema(), indent=2))
        return
    if name not in schema_names():
        raise click.UsageError(f"There is no schema {name!r}; there are {', '.join((*schema_names(), MANIFESTS))}.")
    click.echo((_FOLDER / f"{name}{_SUFFIX}").read_text(encoding="utf-8"), nl=False)
