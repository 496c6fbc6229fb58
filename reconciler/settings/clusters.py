"""The clusters that one process serves: each has the common settings, with its own over them.

Where a settings file has no `clusters`, the settings themselves are of the one cluster there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.model.errors import Misused
from reconciler.model.refs import abridged
from reconciler.settings.load import overlaid, read_settings_file, settings_of, snake
from reconciler.settings.settings import Settings

OF_PROCESS = ("listen", "allowed_hosts", "webhooks", "logs")
"""Settings that a process has once, whatever it serves."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One cluster. name: for pages, logs and metrics, unique in the process; "" for the only one."""

    name: str
    settings: Settings


def load_served(
    path: str | None, *, environment: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> tuple[ClusterSettings, ...]:
    """Every cluster to serve, in the file's order. The flag `cluster` chooses one by its name. Raises `Misused`."""
    document = {} if path is None else read_settings_file(path)
    rows = document.get("clusters")
    if rows is None:
        return (ClusterSettings("", settings_of(document, path or "", environment=environment, flags=flags)),)
    where = f"{path}: clusters"
    if not isinstance(rows, list) or not rows:
        raise Misused(
            f"{where} is {rows!r}, expected a list", hint="write - name: production, and its path and cluster"
        )
    flags = dict(flags or {})
    chosen = flags.pop("cluster", None)
    common = settings_of(document, path or "", environment=environment, flags=flags)
    served = tuple(_served(common, row, f"{where}[{number}]") for number, row in enumerate(rows))
    _refuse_twins(served, where)
    if chosen is None:
        return served
    named = tuple(each for each in served if each.name == chosen)
    if not named:
        raise Misused(f"--cluster {chosen} is none of the clusters in {path}", hint=f"it has {_names(served)}")
    return named


def load_one(path: str | None, *, flags: Mapping[str, object]) -> Settings:
    """The settings of the one cluster that a command is about. Raises `Misused` if there are several to choose from."""
    served = load_served(path, flags=flags)
    if len(served) > 1:
        raise Misused(f"{path} serves several clusters", hint=f"name one with --cluster: {_names(served)}")
    return served[0].settings


def _served(common: Settings, row: object, where: str) -> ClusterSettings:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        raise Misused(f"{where} has no name", hint="each cluster has a name, such as name: production")
    name = row["name"]
    if _NAME.fullmatch(name) is None:
        raise Misused(
            f"{where}.name is {name!r}, expected lower-case letters, digits and dashes",
            hint="it stands in addresses and in the label `cluster` of metrics",
        )
    for key in row:
        if snake(str(key)) in OF_PROCESS:
            raise Misused(
                f"{where} ({name}): {key} is a setting of the whole process", hint="write it outside of clusters"
            )
    its_settings = {key: value for key, value in row.items() if key != "name"}
    return ClusterSettings(name, overlaid(common, its_settings, f"{where} ({name}): "))


def _refuse_twins(served: Sequence[ClusterSettings], where: str) -> None:
    """Raises where two entries would write the same: a name, a cluster's inventory, a branch."""
    marks: tuple[tuple[str, Callable[[ClusterSettings], Hashable | None], str], ...] = (
        ("name", lambda each: each.name, "give each a name of its own"),
        (
            "cluster and inventory",
            lambda each: (
                (each.settings.cluster, each.settings.kubeconfig, each.settings.inventory)
                if not each.settings.cluster.startswith("embedded")
                else None
            ),
            "set cluster or kubeconfig, or another inventory.name for a second set of manifests on one cluster",
        ),
        (
            "snapshot.branch",
            lambda each: (
                (each.settings.repository, each.settings.snapshot.branch) if each.settings.snapshot.publish else None
            ),
            "a branch has the snapshot of one cluster: headroom/snapshot-production",
        ),
        (
            "proposal.branch",
            lambda each: (
                (each.settings.repository, each.settings.proposal.branch) if each.settings.proposal.branch else None
            ),
            "a branch has the proposal for one cluster: headroom/production",
        ),
    )
    for what, mark, hint in marks:
        seen: dict[Any, ClusterSettings] = {}
        for each in served:
            key = mark(each)
            if key is None:
                continue
            if key in seen:
                raise Misused(f"{where}: {seen[key].name} and {each.name} have the same {what}", hint=hint)
            seen[key] = each


def _names(served: Sequence[ClusterSettings]) -> str:
    return abridged([each.name for each in served], _MOST_NAMED)


def sharing_a_copy(served: Sequence[ClusterSettings], folder: str) -> tuple[ClusterSettings, ...]:
    """The same, with one folder for the copies of repositories: clusters of one repository then share its copy."""
    return tuple(
        replace(
            each,
            settings=replace(each.settings, git=replace(each.settings.git, state=each.settings.git.state or folder)),
        )
        for each in served
    )
