"""`headroom init`: scaffolds a capacity repository."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.options import FILES, Progress, options, settings_from
from reconciler.forge import FORGES
from reconciler.model.errors import Failure, Invalid
from reconciler.report.escaping import terminal

if TYPE_CHECKING:
    from reconciler.model.pods import Workload
    from reconciler.model.view import ClusterView
    from reconciler.scaffold import FirstRepository
    from reconciler.settings.settings import Settings

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _label(_ctx: click.Context, _param: click.Parameter, name: str) -> str:
    """Requires a DNS label, since the name becomes a folder and must not be a path."""
    if not _DNS_LABEL.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is not a valid cluster name: use up to 63 of a-z, 0-9 and '-', such as west-1."
        )
    return name


@click.command("init")
@click.argument("folder", type=FILES, default=".")
@click.option(
    "--name",
    "cluster_name",
    default="production",
    show_default=True,
    callback=_label,
    help="The first cluster's folder.",
)
@click.option(
    "--forge", type=click.Choice([*FORGES, "none"]), help="Whose CI file to write. Default: by the remote origin."
)
@click.option(
    "--example", is_flag=True, help="Write the whole example repository instead: two clusters and a snapshot of each."
)
@options("cluster", "config")
def init_command(*, folder: str, cluster_name: str, forge: str | None, example: bool, **values: Any) -> int:
    """Write a small capacity repository to FOLDER (default: here). Existing files are never overwritten.

    Its first buffer is for the largest Deployment of your cluster. Without a cluster, or with --cluster embedded, it is an
    example that plans a node on the embedded one.

    \b
        git init capacity && headroom init capacity && cd capacity
    """
    from reconciler.files import packaged_texts

    target = Path(folder)
    if example:
        _write(target, packaged_texts("examples-repo"))
        steps: tuple[str, ...] = (
            "headroom validate",
            "headroom plan --path clusters/production --cluster embedded:snapshots/production",
        )
    else:
        from reconciler.scaffold import next_steps, repository_files

        notes: list[str] = []
        first = _first_repository(target, cluster_name, forge, settings_from(values), notes)
        _write(target, repository_files(first, packaged_texts("config/scaffold")))
        for note in notes:
            click.echo(terminal(f"headroom: {note}"), err=True)
        if first.target is not None:
            click.echo(f"The buffer is for {first.target.ref}, the largest Deployment without one.")
        steps = next_steps(first)
    click.echo("Next:")
    for step in (*(() if folder == "." else (f"cd {shlex.quote(folder)}",)), *steps):
        click.echo(f"  {step}")
    return 0


def _first_repository(
    target: Path, cluster_name: str, forge: str | None, settings: Settings, notes: list[str]
) -> FirstRepository:
    """The repository for the cluster and the forge that are found. notes: gets what was not found, to print at the end."""
    from reconciler.forge.forges import kind_of
    from reconciler.scaffold import FirstRepository

    chosen = _forge(target, forge, notes)
    first = FirstRepository(cluster_name, forge=chosen, ci_file=kind_of(chosen).ci_file if chosen else "")
    view = _view(settings, notes)
    if view is None:
        return first
    return replace(first, seen=True, target=_target(view, notes), cluster_flag=settings.cluster)


def _forge(target: Path, forge: str | None, notes: list[str]) -> str | None:
    from reconciler.forge.forges import name_of
    from reconciler.source.opening import origin_of

    if forge is not None:
        return None if forge == "none" else forge
    remote = origin_of(target)
    name = name_of(remote) if remote else ""
    if not name:
        missing = "its remote origin names no forge that is known" if remote else "the folder has no remote origin"
        notes.append(f"no CI file: {missing}; --forge {' or '.join((', '.join(FORGES[:-1]), FORGES[-1]))} writes one")
    return name or None


def _view(settings: Settings, notes: list[str]) -> ClusterView | None:
    """The cluster's view; None for the embedded one. A cluster that was not named need not exist."""
    from reconciler.wiring.inputs import NoClusterHere
    from reconciler.wiring.session import seen_cluster

    if settings.cluster == "embedded":
        return None
    try:
        with Progress() as progress:
            progress("view")
            name, view = seen_cluster(settings)
    except NoClusterHere:
        notes.append("there is no cluster here: the buffer is an example for the embedded one")
        return None
    except Failure as failure:
        if settings.cluster:
            raise
        notes.append(f"the cluster cannot be read ({failure.message}): the buffer is an example for the embedded one")
        return None
    notes.extend(f"{name}: {gap}" for gap in view.gaps)
    return view


def _target(view: ClusterView, notes: list[str]) -> Workload | None:
    from reconciler.manifests.repository.declared import live_declared
    from reconciler.scaffold import candidate

    declared = live_declared(view)
    if not declared.node_pools:
        notes.append("the cluster has no NodePool: headroom makes no node before it has one")
    workload = candidate(declared.workloads, declared.buffers)
    if workload is None:
        notes.append(
            "the cluster has no Deployment to buffer that requests CPU or memory: the buffer is for pods of one CPU"
        )
    return workload


def _write(target: Path, files: Mapping[str, str]) -> None:
    place = target
    try:
        taken = [path for path in files if (target / path).exists()]
        if taken:
            raise Invalid(f"{target / taken[0]} already exists", hint="name another folder, or move the file away")
        for path, text in files.items():
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Invalid(
            f"{place}: cannot be written ({error.strerror})", hint="name a folder that you can write to"
        ) from error
    for path in files:
        click.echo(f"  {target / path}")
    click.echo(f"Wrote {len(files)} files.")
