"""The files for paths on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reconciler.clocks import SystemClock
from reconciler.files import read_named_file
from reconciler.manifests.repository.declared import left_out
from reconciler.model.errors import PATH_NOT_FOUND, Stalled
from reconciler.model.findings import Finding
from reconciler.settings.settings import Settings
from reconciler.source.opening import WorkingTree, near_path, tree_at


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
    tree = WorkingTree(Path(), place.as_posix(), templates=Settings().templates).read()
    return dict(tree.files), tuple(map(left_out, tree.skipped))


def paths_at(revision: str, paths: Sequence[str]) -> dict[str, bytes]:
    """The same files at a revision of their repository, without those that did not exist then.

    Raises `Stalled`, and `Invalid` for a path outside any repository.
    """
    from reconciler.source.revision import find_repository

    files: dict[str, bytes] = {}
    for path in paths:
        place = _from_here(path)
        folder = place if place.is_dir() else place.parent
        prefix = "" if folder == Path() else f"{folder.as_posix()}/"
        find_repository(folder, hint="leave --base out, or name a folder of a Git repository")
        tree = tree_at(str(folder), revision, "", clock=SystemClock())
        found = {prefix + name: content for name, content in tree.files.items()}
        files |= found if place.is_dir() else {name: found[name] for name in (place.as_posix(),) if name in found}
    return files


def _from_here(path: str) -> Path:
    """The path as seen from the current folder, so that every spelling of a place gives the same file names.

    A path outside the current folder stays as it was typed.
    """
    place = Path(path)
    if not place.is_absolute() and ".." not in place.parts:
        return place
    here, there = Path.cwd(), place.resolve()
    return there.relative_to(here) if there.is_relative_to(here) else place
