"""The age of the published snapshot that a plan is made with."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reconciler.ports import Cluster

_OLD = timedelta(hours=25)
"""The daemon renews its snapshot every day, even if nothing has changed."""


def tell_age(cluster: Cluster, now: datetime) -> None:
    """Prints the age to stderr; nothing for other clusters. now: the time of the plan."""
    from reconciler.wiring.published_snapshot import PublishedCluster

    if not isinstance(cluster, PublishedCluster):
        return
    age = now - cluster.taken
    click.echo(f"headroom: planned on {cluster.name}: {age_in_words(age)}", err=True)
    if age > _OLD:
        click.echo("  the daemon renews it every day: look whether it runs, and whether it may push", err=True)


def age_in_words(age: timedelta) -> str:
    """`12 minutes old`; in hours from two hours on, in days from two days on."""
    minutes = int(age / timedelta(minutes=1))
    for unit, length in (("day", 24 * 60), ("hour", 60)):
        if minutes >= 2 * length:
            return f"{minutes // length} {unit}s old"
    if age < timedelta(0):
        return "taken after the time that is planned for"
    return f"{minutes} minute{'' if minutes == 1 else 's'} old"
