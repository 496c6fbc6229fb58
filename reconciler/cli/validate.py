"""`headroom validate`: findings about manifests, with no cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import click

from reconciler.cli.options import Moment, output_option
from reconciler.model.findings import Finding, Severity

if TYPE_CHECKING:
    from reconciler.model.declared import Declared


@click.command("validate", short_help="Check manifests; works with no cluster.")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--path", metavar="SUBDIR", help="Folder of this repository to check, with the templates at its root.")
@click.option("--base", metavar="REF", help="Also report what may not change since this revision.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--now", type=Moment(), help="Use this as the current time.")
@output_option("text", "json", "sarif", "github")
def command(
    *, paths: tuple[str, ...], path: str | None, base: str | None, strict: bool, now: datetime | None, output: str
) -> int:
    """Check every manifest below PATH… (default: this folder), and report what is wrong, where, and what to write instead.

    Templates in folders called templates are rendered too, with made-up objects and with the NodePools that are declared.

    With --base, changes that the API server will refuse are found too: those of a provisioning request.

    Exits 1 when there is an error; warnings alone exit 0, unless --strict makes them errors.

    \b
        headroom validate clusters/production --strict
        headroom validate --output github --base origin/main
    """
    from reconciler.cli.manifest_files import read_paths, read_subdirectory
    from reconciler.clocks import SystemClock
    from reconciler.manifests.repository.declared import read
    from reconciler.manifests.schedule_findings import schedule_findings
    from reconciler.report.words import listed

    if paths and path:
        raise click.UsageError("PATH and --path both name what to read: give one of them.")
    places = paths or (path or ".",)
    files, left_out = read_subdirectory(path) if path else read_paths(places)
    declared = read(files, one_cluster=False)
    present = now or SystemClock().now()
    told = (
        *declared.findings,
        *left_out,
        *schedule_findings(declared.schedules, present),
        *_template_findings(files, declared),
        *_changes_refused(base, places, files),
    )
    if strict:
        told = tuple(
            replace(finding, severity=Severity.ERROR) if finding.severity is Severity.WARNING else finding
            for finding in told
        )
    findings = tuple(sorted(told, key=lambda finding: finding.sort_key))
    click.echo(_printed(output, findings, present, documents=declared.documents, files=len(files)), nl=False)
    if not declared.documents and not findings:
        where = listed("this folder" if place == "." else place for place in places)
        click.echo(f"No manifest was found in {where}: files that end in .yaml, .yml and .json are read.", err=True)
    return int(any(finding.severity is Severity.ERROR for finding in findings))


def _printed(output: str, findings: tuple[Finding, ...], now: datetime, *, documents: int, files: int) -> str:
    from reconciler.cli.console import paint_for_stdout, width_of_stdout
    from reconciler.report.escaping import to_json
    from reconciler.report.findings import findings_document, findings_text, github_annotations, sarif_document

    if output == "json":
        return to_json(findings_document(findings, now))
    if output == "sarif":
        return json.dumps(sarif_document(findings), indent=2) + "\n"
    if output == "github":
        return github_annotations(findings)
    paint, width = paint_for_stdout(), width_of_stdout()
    return findings_text(findings, documents=documents, files=files, paint=paint, width=width)


def _changes_refused(base: str | None, places: Sequence[str], files: Mapping[str, bytes]) -> tuple[Finding, ...]:
    if base is None:
        return ()
    if not base.strip():
        raise click.UsageError("--base is empty: name a revision, such as --base origin/main, or leave it out.")
    from reconciler.cli.manifest_files import paths_at
    from reconciler.manifests.repository.transitions import changed_since

    return changed_since(paths_at(base, places), files, one_cluster=False)


def _template_findings(files: Mapping[str, bytes], declared: Declared) -> tuple[Finding, ...]:
    if not any(path.endswith(".j2") for path in files):
        return ()
    from reconciler.cli.console import Progress
    from reconciler.files import packaged_texts
    from reconciler.manifests.repository.reading import read_rendered
    from reconciler.render.check import findings_of_files

    with Progress() as progress:
        progress("templates")
        return findings_of_files(files, packaged_texts("templates", suffix=".j2"), read_rendered, declared.manifests)
