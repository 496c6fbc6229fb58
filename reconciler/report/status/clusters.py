"""All clusters of one daemon on one page, and as JSON (`headroom.dev/clusters/v1`): what each one's own first page says in its tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler import __version__
from reconciler.model.refs import counted
from reconciler.report.escaping import terminal
from reconciler.report.status.words import Row, buffers_in, chunks_tile, headline, tile
from reconciler.report.words import an_hour

CLUSTERS_SCHEMA = "headroom.dev/clusters/v1"


def clusters_document(documents: Mapping[str, Row]) -> dict[str, Any]:
    """documents: live ones (`headroom.dev/status/v1`) by the cluster's name."""
    return {
        "schemaVersion": CLUSTERS_SCHEMA,
        "version": __version__,
        "clusters": [_row(name, document) for name, document in documents.items()],
    }


def clusters_page(document: Row) -> dict[str, Any]:
    """document: as from `clusters_document`. The clusters where something is wrong come first."""
    rows: list[Row] = document["clusters"]
    wrong, short = [row for row in rows if row["why"]], [row for row in rows if row["ready"] < row["wanted"]]
    return {
        "version": document["version"],
        "headline": _headline(len(rows), wrong, short),
        "good": not wrong and not short,
        "tiles": _tiles(rows),
        "rows": [_shown(row) for row in sorted(rows, key=lambda row: (not row["why"], row["ready"] >= row["wanted"]))],
    }


def clusters_text(document: Row) -> str:
    """A line for each cluster, as on the page. document: as from `clusters_document`."""
    page = clusters_page(document)
    lines = [page["headline"]]
    for row in page["rows"]:
        facts = (
            f"{row['size']} chunks ready, {counted(row['nodes'], 'node')}, {row['cost']}/h; " if row["planned"] else ""
        )
        lines.append(terminal(f"{row['name']}: {facts}{row['words']}"))
    return "\n".join(lines) + "\n"


def _row(name: str, document: Row) -> dict[str, Any]:
    rows = buffers_in(document)
    buffers = [row["capacity"] for row in rows]
    return {
        "name": name,
        "finished": document["finished"] if document["passes"] else None,
        "revision": document["revision"],
        "planned": document["planned"],
        "why": document["health"]["why"],
        "headline": headline(document),
        "buffers": len(buffers),
        "wanted": sum(row["desired"] or 0 for row in rows),
        **{key: sum(row[key] for row in buffers) for key in ("ready", "coming", "missing")},
        **{key: sum(pool[key] for pool in document["nodePools"]) for key in ("nodes", "held")},
        "perHour": document["cost"]["perHour"],
    }


def _headline(clusters: int, wrong: Sequence[Row], short: Sequence[Row]) -> str:
    if wrong:
        verb = "needs" if len(wrong) == 1 else "need"
        return f"{len(wrong):,} of {counted(clusters, 'cluster')} {verb} attention"
    if short:
        return f"Buffers of {len(short):,} of {counted(clusters, 'cluster')} are not full"
    return f"All {clusters:,} clusters are as declared"


def _tiles(rows: Sequence[Row]) -> list[dict[str, str]]:
    ready, wanted = (sum(row[key] for row in rows) for key in ("ready", "wanted"))
    nodes, held = (sum(row[key] for row in rows) for key in ("nodes", "held"))
    well = sum(not row["why"] for row in rows)
    tone = "good" if well == len(rows) else "bad"
    return [
        tile("Clusters", f"{well:,} of {len(rows):,}", "without a failure", tone),
        chunks_tile(ready, wanted, sum(row["buffers"] for row in rows)),
        tile("Nodes", f"{nodes:,}", f"{held:,} held"),
        tile("Cost an hour", an_hour(sum(row["perHour"] for row in rows)), "all nodes"),
    ]


def _shown(row: Row) -> dict[str, Any]:
    short = row["ready"] < row["wanted"]
    return {
        **row,
        "path": f"clusters/{row['name']}/",
        "size": f"{row['ready']:,} of {row['wanted']:,}"
        if row["wanted"]
        else "none asked for"
        if row["planned"]
        else "",
        "tone": ("bad" if row["why"] else "warn" if short else "good") if row["wanted"] else "",
        "words": row["why"][0] if row["why"] else row["headline"],
        "commit": (row["revision"] or "").rpartition(":")[2][:8],
        "cost": an_hour(row["perHour"]),
    }
