"""`headroom validate`: findings about manifests, with no cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.options import Moment, output_option
from reconciler.model.findings import Finding, Severity

if TYPE_CHECKING:
    from reconciler.model.declared import Declared


@click.command("validate", short_help="Check manifests; works with no cluster.")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--now", type=Moment(), help="Take this as the present time.")
@output_option("text", "json", "sarif", "github")
def command(*, paths: tuple[str, ...], now: datetime | None, output: str) -> int:
    """Check every manifest below PATH… (default: this folder), and say what is wrong, where, and what to write instead.

    Templates in folders called templates are rendered too, with made-up objects and with the NodePools that are declared.

    Exits 1 when there is an error; warnings alone exit 0.

    \b
        headroom validate clusters/production
        headroom validate --output github
    """
    from reconciler.cli.manifest_files import read_paths  # noqa: PLC0415 - heavy, and only for this command
    from reconciler.cli.paint import paint_for_stdout, width_of_stdout  # noqa: PLC0415 - likewise
    from reconciler.clocks import SystemClock  # noqa: PLC0415 - likewise
    from reconciler.manifests.declared import read  # noqa: PLC0415 - likewise
    from reconciler.manifests.schedule_findings import schedule_findings  # noqa: PLC0415 - likewise
    from reconciler.report.annotations import github_annotations  # noqa: PLC0415 - likewise
    from reconciler.report.machine import findings_document, to_json  # noqa: PLC0415 - likewise
    from reconciler.report.sarif import sarif_document  # noqa: PLC0415 - likewise
    from reconciler.report.text import findings_text  # noqa: PLC0415 - likewise

    files, left_out = read_paths(paths or (".",))
    declared = read(files, one_cluster=False)
    present = now or SystemClock().now()
    told = (
        *declared.findings,
        *left_out,
        *schedule_findings(declared.schedules, present),
        *_template_findings(files, declared),
    )
    findings = tuple(sorted(told, key=lambda finding: finding.sort_key))
    printed: dict[str, Any] = {
        "text": lambda: findings_text(
            findings,
            documents=declared.documents,
            files=len(files),
            paint=paint_for_stdout(),
            width=width_of_stdout(),
        ),
        "json": lambda: to_json(findings_document(findings, present)),
        "sarif": lambda: json.dumps(sarif_document(findings), indent=2) + "\n",
        "github": lambda: github_annotations(findings),
    }
    click.echo(printed[output](), nl=False)
    return int(any(finding.severity is Severity.ERROR for finding in findings))


def _template_findings(files: Mapping[str, bytes], declared: Declared) -> tuple[Finding, ...]:
    if not any(path.endswith(".j2") for path in files):
        return ()
    from reconciler.manifests.rendered import read_rendered  # noqa: PLC0415 - only where there are templates
    from reconciler.packaged import packaged_texts  # noqa: PLC0415 - likewise
    from reconciler.render.check import findings_of_files  # noqa: PLC0415 - likewise

    return findings_of_files(files, packaged_texts("templates", suffix=".j2"), read_rendered, declared.manifests)
