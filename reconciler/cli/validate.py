"""`headroom validate`: findings about manifests, with no cluster. And which files a path on the command line stands for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.options import FILES, Progress, file_option, options, output_option
from reconciler.clocks import SystemClock
from reconciler.files import read_named_file
from reconciler.manifests.repository.declared import left_out, read
from reconciler.model.errors import PATH_NOT_FOUND, Stalled
from reconciler.model.findings import Finding, Severity
from reconciler.settings.settings import Settings
from reconciler.source.opening import WorkingTree, near_path, place_in_repository
from reconciler.source.selection import Scope

if TYPE_CHECKING:
    from reconciler.model.declared import Declared


@click.command("validate")
@click.argument("paths", type=FILES, nargs=-1, metavar="[PATH]…")
@file_option("--path", "SUBDIR", "Folder of this repository to check, with the templates at its root.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@options("now")
@output_option("text", "json", "sarif", "github")
def validate_command(
    *, paths: tuple[str, ...], path: str | None, strict: bool, now: datetime | None, output: str
) -> int:
    """Check every manifest below PATH… (default: this folder), and report what is wrong, where, and what to write instead.

    Templates in folders called templates are rendered too, with made-up objects and with the NodePools that are declared.

    Exits 1 when there is an error; warnings alone exit 0, unless --strict makes them errors.

    \b
        headroom validate clusters/production --strict
        headroom validate --output github
    """
    from reconciler.manifests.schedule_findings import schedule_findings
    from reconciler.model.refs import listed

    if paths and path:
        raise click.UsageError("PATH and --path both name what to read: give one of them.")
    places = paths or (path or ".",)
    files, unread = read_subdirectory(path) if path else read_paths(places)
    declared = read(files, one_cluster=False)
    present = now or SystemClock().now()
    told = (
        *declared.findings,
        *unread,
        *schedule_findings(declared.schedules, present),
        *_template_findings(files, declared),
    )
    if strict:
        told = tuple(
            replace(finding, severity=Severity.ERROR) if finding.severity is Severity.WARNING else finding
            for finding in told
        )
    findings = tuple(sorted(told, key=lambda finding: finding.sort_key))
    if output in {"sarif", "github"}:
        here = place_in_repository(".")
        findings = tuple(finding.below(here) for finding in findings)
    click.echo(_printed(output, findings, present, documents=declared.documents, files=len(files)), nl=False)
    if not declared.documents and not findings:
        where = listed("this folder" if place == "." else place for place in places)
        click.echo(f"No manifest was found in {where}: files that end in .yaml, .yml and .json are read.", err=True)
    return int(any(finding.severity is Severity.ERROR for finding in findings))


def _printed(output: str, findings: tuple[Finding, ...], now: datetime, *, documents: int, files: int) -> str:
    from reconciler.cli.options import paint_for_stdout, width_of_stdout
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


def _template_findings(files: Mapping[str, bytes], declared: Declared) -> tuple[Finding, ...]:
    if not any(path.endswith(".j2") for path in files):
        return ()
    from reconciler.files import packaged_texts
    from reconciler.render.check import findings_of_files

    with Progress() as progress:
        progress("templates")
        return findings_of_files(files, packaged_texts("templates", suffix=".j2"), declared.manifests)


def read_paths(paths: Sequence[str]) -> tuple[dict[str, bytes], tuple[Finding, ...]]:
    """Files by the path that a person would type, and a finding for each that was left out.

    A folder stands for every manifest in it that `.sourceignore` does not leave out; a file for itself, whatever its name. Raises
    `Stalled` if a path does not exist.
    """
    files: dict[str, bytes] = {}
    findings: list[Finding] = []
    for path in paths:
        place = _from_here(path)
        if place.is_dir():
            tree = WorkingTree(place).read()
            prefix = "" if place == Path() else f"{place.as_posix()}/"
            files |= {prefix + name: content for name, content in tree.files.items()}
            findings += [left_out((prefix + name, why)) for name, why in tree.skipped]
        else:
            try:
                files[place.as_posix()] = read_named_file(place)
            except OSError as error:
                hint = near_path(path) or "name a file or a folder"
                message = f"{path}: cannot be read ({error.strerror})"
                raise Stalled(message, reason=PATH_NOT_FOUND, hint=hint) from error
    return files, tuple(findings)


def read_subdirectory(path: str) -> tuple[dict[str, bytes], tuple[Finding, ...]]:
    """What a daemon would read of this folder as its repository: the files below `path`, and the root's templates.

    The root's `.sourceignore` counts too. A file, or a path outside this folder, is read for itself.
    """
    place = _from_here(path)
    if not place.is_dir() or place.is_absolute() or ".." in place.parts:
        return read_paths((path,))
    tree = WorkingTree(Path(), Scope.of(place.as_posix(), Settings().templates)).read()
    return dict(tree.files), tuple(map(left_out, tree.skipped))


def _from_here(path: str) -> Path:
    """The path as seen from the current folder, so that every spelling of a place gives the same file names.

    A path outside the current folder stays as it was typed.
    """
    place = Path(path)
    if not place.is_absolute() and ".." not in place.parts:
        return place
    here, there = Path.cwd(), place.resolve()
    return there.relative_to(here) if there.is_relative_to(here) else place
