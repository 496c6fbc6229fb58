"""`headroom crd`: prints the CustomResourceDefinitions that headroom owns, from its own types."""

from __future__ import annotations

import json

import click


@click.command("crd", short_help="Print the CustomResourceDefinitions that headroom owns.")
@click.option("--output", "-o", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def command(output: str) -> None:
    """Print the CustomResourceDefinitions that headroom owns: Buffer, MetricsProducer and ProvisioningClass.

    CapacityBuffer and ProvisioningRequest come with Karpenter or Cluster Autoscaler and are not printed.

    \b
        headroom crd | kubectl apply --server-side -f -
    """
    from reconciler.manifests.crds import crds, to_yaml  # noqa: PLC0415 - heavy, and only for this command

    if output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(crds())}, indent=2))
        return
    click.echo("---\n".join(to_yaml(definition) for definition in crds()), nl=False)
