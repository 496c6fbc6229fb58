"""`headroom schema NAME` prints the JSON Schema of an output, `headroom crd` headroom's CustomResourceDefinitions."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from reconciler.model.view import Manifest

_FOLDER = files("reconciler.report") / "schemas"
_SUFFIX = ".json"
_ROWS = "rows"
"""Rows that several outputs have, each described once. It is no output itself."""
_REFERENCE = re.compile(r'"#/\$defs/(\w+)"')
_KINDS = ("Buffer", "MetricsProducer", "ProvisioningClass", "ProvisioningRequest")


def schema_names() -> list[str]:
    names = {entry.name.removesuffix(_SUFFIX) for entry in _FOLDER.iterdir() if entry.name.endswith(_SUFFIX)}
    return sorted(names - {_ROWS})


def output_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of an output, with every row that it refers to."""
    schema, rows = (json.loads((_FOLDER / f"{item}{_SUFFIX}").read_text(encoding="utf-8")) for item in (name, _ROWS))
    found: dict[str, Any] = schema.get("$defs", {})
    while missing := set(_REFERENCE.findall(json.dumps([schema, found]))) - found.keys():
        found |= {row: rows["$defs"][row] for row in missing}
    return {**schema, "$defs": dict(sorted(found.items()))}


@click.command("schema")
@click.argument("name", type=click.Choice(schema_names()), metavar="[NAME]", required=False)
def schema_command(name: str | None) -> None:
    """Print the JSON Schema of an output, such as plan.v1. Without NAME, list the schemas."""
    if name is None:
        click.echo("\n".join(schema_names()))
        return
    click.echo(json.dumps(output_schema(name), indent=2, ensure_ascii=False))


@click.command("crd")
@click.argument("kinds", nargs=-1, type=click.Choice(_KINDS, case_sensitive=False), metavar="[KIND]…")
@click.option("--all", "everything", is_flag=True, help="Also what the cluster has already. It is not asked.")
def crd_command(kinds: tuple[str, ...], *, everything: bool) -> None:
    """Print the CustomResourceDefinitions of Buffer, MetricsProducer, ProvisioningClass and ProvisioningRequest, or of some KINDs.

    What the current cluster has from somebody else, or in a newer form, is left out, and told on stderr. So ProvisioningRequest, which is
    Cluster Autoscaler's kind, is never replaced. CapacityBuffer and NodePool come with Karpenter and are not printed.

    \b
        headroom crd | kubectl apply --server-side -f -
        headroom crd ProvisioningRequest | kubectl create -f -
    """
    from reconciler.manifests.crds import crds, to_yaml

    chosen = list(crds(kinds or _KINDS))
    if not everything:
        chosen = _without_those_there(chosen)
    click.echo("---\n".join(to_yaml(definition) for definition in chosen), nl=False)


def _without_those_there(chosen: list[Manifest]) -> list[Manifest]:
    """If the cluster does not say what it has, the kind that may be somebody else's is left out."""
    from reconciler.manifests.crds import why_left_out
    from reconciler.model.errors import Failure
    from reconciler.wiring.inputs import definitions_there

    try:
        there = definitions_there(item["metadata"]["name"] for item in chosen)
        reasons = [why_left_out(item, there.get(item["metadata"]["name"])) for item in chosen]
    except Failure as failure:
        why = f"whether the cluster has one is not known ({failure.message}); --all prints it"
        reasons = [why if item["spec"]["names"]["kind"] == "ProvisioningRequest" else "" for item in chosen]
    for item, why in zip(chosen, reasons, strict=True):
        if why:
            click.echo(f"{item['metadata']['name']} is left out: {why}", err=True)
    return [item for item, why in zip(chosen, reasons, strict=True) if not why]
