"""What a path opens: files as they stand, and the remote of a folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.model.errors import Invalid, Stalled
from reconciler.source.opening import WorkingTree, origin_of
from reconciler.source.selection import Scope, TreeLimits

EVERYTHING, NO_LIMITS = Scope(), TreeLimits()
Files = Mapping[str, str]


def write(root: Path, files: Files) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def empty(*names: str) -> Files:
    return dict.fromkeys(names, "")


CLUSTERS = empty(
    "clusters/a/x.yaml", "clusters/b/x.yaml", "templates/claim.yaml.j2", "templates/note.yaml", "other/o.j2"
)
READ: dict[str, tuple[Files, Scope, list[str]]] = {
    "manifests and templates in order of path": (
        empty("b.yaml", "a/c.yml", "a/d.json", "t.yaml.j2", "README.md"),
        EVERYTHING,
        ["a/c.yml", "a/d.json", "b.yaml", "t.yaml.j2"],
    ),
    "hidden files and folders are not manifests": (
        empty("a.yaml", ".github/ci.yaml", ".pre.yaml", ".git/x.json"), EVERYTHING, ["a.yaml"],
    ),
    "files of other formats are passed over": (
        empty("a.toml", "a.xml", "a.jsonl", "a.json5", "a.md", "a.lock", "yaml", "a.yaml.bak", "a.tf", "a.sh"), EVERYTHING, [],
    ),
    "a subdirectory keeps its path in the repository": (
        empty("a/b/c.yaml", "a/d.yaml"), Scope.of("./a/b/", ""), ["a/b/c.yaml"],
    ),
    "the rules of a folder are gitignore's": (
        {".sourceignore": "# drafts\n*.draft.yaml\n/charts/\nvalues.yaml\n!keep/values.yaml\n",
         **empty("a.draft.yaml", "charts/x.yaml", "deep/charts/x.yaml", "keep/values.yaml", "other/values.yaml")},
        EVERYTHING,
        ["deep/charts/x.yaml", "keep/values.yaml"],
    ),
    "the rules of a deeper folder have the last word": (
        {".sourceignore": "*.json\n", "b/.sourceignore": "!x.json\ny.yaml\n",
         **empty("a/x.json", "b/x.json", "b/y.yaml", "y.yaml")},
        EVERYTHING,
        ["b/x.json", "y.yaml"],
    ),
    "rules above a subdirectory count in it": ({".sourceignore": "*.json\n", **empty("a/x.json")}, Scope.of("a", ""), []),
    "what is in an ignored folder stays ignored": (
        {".sourceignore": "old/\n", "old/.sourceignore": "!x.yaml\n", **empty("old/x.yaml")}, EVERYTHING, [],
    ),
    "a pattern of many stars is tried on a long name": (
        {".sourceignore": "*a" * 40 + "b", **empty("x.yaml", f"{'a' * 240}.yaml")}, EVERYTHING, [f"{'a' * 240}.yaml", "x.yaml"],
    ),
    "templates of the repository are read beside a subdirectory": (
        CLUSTERS, Scope.of("clusters/a", "templates"), ["clusters/a/x.yaml", "templates/claim.yaml.j2"],
    ),
    "and once where they are in it": (CLUSTERS, Scope.of("clusters/a", "clusters/a"), ["clusters/a/x.yaml"]),
    "there need not be any": (CLUSTERS, Scope.of("clusters/a", "no/such"), ["clusters/a/x.yaml"]),
}  # fmt: skip


@pytest.mark.parametrize(("files", "scope", "read"), READ.values(), ids=READ)
def test_what_is_read(tmp_path: Path, files: Files, scope: Scope, read: list[str]) -> None:
    write(tmp_path, files)
    tree = WorkingTree(tmp_path, scope).read()
    assert list(tree.files.items()) == [(name, files[name].encode()) for name in read]
    assert (tree.skipped, tree.revision) == ((), None)


SKIPPED = {
    **{
        name: f"its name ends in .{name.partition('.')[2]}, which is nearly {meant}; rename it"
        for name, meant in (
            ("web.ymal", ".yaml"),
            ("web.YAML", ".yaml"),
            ("web.yaaml", ".yaml"),
            ("web.yal", ".yaml"),
            ("a.jsno", ".json"),
            ("b.ylm", ".yml"),
            ("c.myl", ".yml"),
        )
    },
    "large.yaml": "it has 101 bytes; 100 is the most a manifest may have",
    "lfs.yaml": "it is a Git LFS pointer; commit the file itself",
}
"""A file that is not read is named, since what it declared before would be deleted otherwise."""


def test_what_is_left_out_is_named_with_the_reason(tmp_path: Path) -> None:
    lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    write(tmp_path, {**empty(*SKIPPED), "large.yaml": "x" * 101, "lfs.yaml": lfs, "whole.yaml": "x" * 100})
    tree = WorkingTree(tmp_path, limits=TreeLimits(file_bytes=100)).read()
    assert list(tree.files) == ["whole.yaml"]
    assert dict(tree.skipped) == SKIPPED


TENS = dict.fromkeys(("a.yaml", "b.yaml", "c.yaml"), "x" * 10)


@pytest.mark.parametrize(
    ("files", "folder", "limits", "reason", "words"),
    [
        ({}, "clusters/prod", NO_LIMITS, "PathNotFound", "no folder 'clusters/prod'"),
        (TENS, "", TreeLimits(total_bytes=25), "TreeTooLarge", "the repository has more than 25 bytes"),
        (TENS, "", TreeLimits(files=2), "TreeTooLarge", "the repository has more than 2 manifests"),
        (TENS, "", TreeLimits(seconds=0), "TreeTooLarge", "more than can be looked through in 0 seconds"),
        ({".sourceignore": "*a" * 40_000}, "", NO_LIMITS, "SourceIgnoreInvalid", "larger than 64 KiB"),
    ],
)
def test_a_tree_that_cannot_be_read_in_full_is_refused(
    tmp_path: Path, files: Files, folder: str, limits: TreeLimits, reason: str, words: str
) -> None:
    write(tmp_path, files)
    with pytest.raises(Stalled, match=words) as caught:
        WorkingTree(tmp_path, Scope(folder), limits=limits).read()
    assert caught.value.reason == reason


@pytest.mark.parametrize("folders", [("../other", ""), ("a/../../b", ""), ("/etc", ""), ("", "../templates")])
def test_a_folder_outside_of_the_repository_is_refused(folders: tuple[str, str]) -> None:
    with pytest.raises(Invalid, match="leaves the repository"):
        Scope.of(*folders)


@pytest.mark.parametrize("target", ["../base/pool.yaml", "../base", "/etc/passwd", "nowhere"])
def test_links_are_not_followed_and_named(tmp_path: Path, target: str) -> None:
    write(tmp_path, empty("base/pool.yaml", "clusters/own.yaml"))
    for name in ("link.yaml", "base", "notes.txt"):
        (tmp_path / "clusters" / name).symlink_to(target)
    tree = WorkingTree(tmp_path, Scope("clusters")).read()
    assert list(tree.files) == ["clusters/own.yaml"]
    why = "it is a link; links are not followed"
    assert tree.skipped == (("clusters/base", why), ("clusters/link.yaml", why))


def test_a_path_through_a_link_is_no_folder_of_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write(tmp_path, empty("outside/a.yaml", "repository/own.yaml"))
    (root / "clusters").symlink_to("../outside")
    with pytest.raises(Stalled, match="no folder 'clusters/a'") as told:
        WorkingTree(root, Scope("clusters/a")).read()
    assert told.value.hint == "clusters: it is a link; links are not followed"


def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    tree = WorkingTree(tmp_path).read()
    assert list(tree.files) == []
    assert tree.skipped == (("pipe.yaml", "it is a pipe, a socket or a device"),)


@pytest.mark.parametrize(("name", "shown"), [(b"\x1b[31m", r"\x1b[31m"), (b"\xff", r"\udcff"), ("é".encode(), "é")])
def test_a_stall_names_a_folder_in_letters_that_can_be_printed(tmp_path: Path, name: bytes, shown: str) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    folder.mkdir()
    os.mkfifo(folder / ".sourceignore")
    with pytest.raises(Stalled) as caught:
        WorkingTree(tmp_path).read()
    assert caught.value.message == f"{shown}/.sourceignore cannot be read: it is a pipe, a socket or a device"


def test_a_name_that_no_report_could_print_is_left_out(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.yaml")).write_text("x")
    tree = WorkingTree(tmp_path).read()
    assert tree.files == {}
    assert tree.skipped == (("caf?.yaml", "it has a name that is not UTF-8"),)


def test_the_last_good_tree_stays_when_the_folder_goes(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write(root, empty("a.yaml"))
    source = WorkingTree(root)
    source.read()
    root.rename(tmp_path / "elsewhere")
    tree = source.read()
    assert list(tree.files) == ["a.yaml"]
    assert tree.stalled == ("PathNotFound", f"{root} is not a folder that can be read")
    (tmp_path / "elsewhere").rename(root)
    assert source.read().stalled is None


URL = "git@github.com:example/capacity.git"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_it_is_that_of_the_repository_whose_top_the_folder_is(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert origin_of(tmp_path) is None
    git(tmp_path, "remote", "add", "origin", URL)
    assert origin_of(tmp_path) == URL
    (tmp_path / "inside").mkdir()
    assert origin_of(tmp_path / "inside") is None


def test_a_folder_that_is_no_repository_or_not_there_has_none(tmp_path: Path) -> None:
    assert origin_of(tmp_path) is None
    assert origin_of(tmp_path / "nowhere") is None


def test_a_broken_repository_has_none(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert origin_of(tmp_path) is None
