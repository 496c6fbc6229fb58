"""`headroom crd`: prints headroom's CustomResourceDefinitions, made from its own types."""

from __future__ import annotations

import json

import click

_KINDS = ("Buffer", "MetricsProducer", "ProvisioningClass", "ProvisioningRequest")


@click.command("crd", short_help="Print headroom's CustomResourceDefinitions.")
@click.argument("kinds", nargs=-1, type=click.Choice(_KINDS, case_sensitive=False), metavar="[KIND]...")
@click.option("--output", "-o", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def command(kinds: tuple[str, ...], output: str) -> None:
    """Print the CustomResourceDefinitions of Buffer, MetricsProducer, ProvisioningClass and ProvisioningRequest, or of some KINDs.

    ProvisioningRequest is Cluster Autoscaler's kind, and this definition is for clusters without one: where there is one, name
    the other kinds. CapacityBuffer and NodePool come with Karpenter and are not printed.

    \b
        headroom crd | kubectl apply --server-side -f -
        headroom crd ProvisioningRequest | kubectl apply --server-side -f -
    """
    from reconciler.manifests.crds import crds, to_yaml  # noqa: PLC0415 - heavy, and only for this command

    chosen = crds(kinds or _KINDS)
    if output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(chosen)}, indent=2))
        return
    click.echo("---\n".join(to_yaml(definition) for definition in chosen), nl=False)
