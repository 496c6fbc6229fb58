"""What a path opens: files as they stand, and the remote of a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reconciler.model.declared import SourceTree
from reconciler.model.errors import Invalid, Stalled
from reconciler.source.opening import WorkingTree, origin_of
from reconciler.source.selection import Scope, TreeLimits


def write(root: Path, **files: str) -> None:
    """Files by path; `__` stands for a slash and `_dot_` for a dot."""
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def names(tree: SourceTree) -> list[str]:
    return list(tree.files)


def test_manifests_and_templates_in_order_of_path(tmp_path: Path) -> None:
    write(tmp_path, b_dot_yaml="b", a__c_dot_yml="c", a__d_dot_json="{}", t_dot_yaml_dot_j2="t", README_dot_md="no")
    tree = WorkingTree(tmp_path).read()
    assert names(tree) == ["a/c.yml", "a/d.json", "b.yaml", "t.yaml.j2"]
    assert tree.files["b.yaml"] == b"b"
    assert tree.revision is None


def test_hidden_files_and_folders_are_not_manifests(tmp_path: Path) -> None:
    write(tmp_path, a_dot_yaml="a", _dot_github__ci_dot_yaml="no", _dot_pre_dot_yaml="no", _dot_git__x_dot_json="no")
    assert names(WorkingTree(tmp_path).read()) == ["a.yaml"]


def test_a_subdirectory_keeps_its_path_in_the_repository(tmp_path: Path) -> None:
    write(tmp_path, a__b__c_dot_yaml="c", a__d_dot_yaml="d")
    assert names(WorkingTree(tmp_path, Scope.of("./a/b/", "")).read()) == ["a/b/c.yaml"]


def test_a_subdirectory_that_is_not_there_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(Stalled, match="no folder 'clusters/prod'") as caught:
        WorkingTree(tmp_path, Scope.of("clusters/prod", "")).read()
    assert caught.value.reason == "PathNotFound"


@pytest.mark.parametrize("subdirectory", ["../other", "a/../../b", "/etc"])
def test_a_subdirectory_outside_is_refused(tmp_path: Path, subdirectory: str) -> None:
    with pytest.raises(Invalid, match="leaves the repository"):
        WorkingTree(tmp_path, Scope.of(subdirectory, ""))


def test_sourceignore_is_gitignore_for_its_own_folder(tmp_path: Path) -> None:
    write(
        tmp_path,
        _dot_sourceignore="# drafts\n*.draft.yaml\n/charts/\nvalues.yaml\n!keep/values.yaml\n",
        a_dot_draft_dot_yaml="no",
        charts__x_dot_yaml="no",
        deep__charts__x_dot_yaml="yes",
        keep__values_dot_yaml="yes",
        other__values_dot_yaml="no",
    )
    assert names(WorkingTree(tmp_path).read()) == ["deep/charts/x.yaml", "keep/values.yaml"]


def test_a_deeper_sourceignore_has_the_last_word(tmp_path: Path) -> None:
    write(
        tmp_path,
        _dot_sourceignore="*.json\n",
        a__x_dot_json="no",
        b___dot_sourceignore="!x.json\ny.yaml\n",
        b__x_dot_json="yes",
        b__y_dot_yaml="no",
        y_dot_yaml="yes",
    )
    assert names(WorkingTree(tmp_path).read()) == ["b/x.json", "y.yaml"]
    assert names(WorkingTree(tmp_path, Scope.of("a", "")).read()) == []


def test_what_is_in_an_ignored_folder_stays_ignored(tmp_path: Path) -> None:
    write(tmp_path, _dot_sourceignore="old/\n", old___dot_sourceignore="!x.yaml\n", old__x_dot_yaml="no")
    assert names(WorkingTree(tmp_path).read()) == []


@pytest.mark.parametrize("target", ["../base/pool.yaml", "../base", "/etc/passwd", "nowhere"])
def test_links_are_not_followed_and_named(tmp_path: Path, target: str) -> None:
    write(tmp_path, base__pool_dot_yaml="pool", clusters__own_dot_yaml="own")
    for name in ("link.yaml", "base", "notes.txt"):
        (tmp_path / "clusters" / name).symlink_to(target)
    tree = WorkingTree(tmp_path, Scope.of("clusters", "")).read()
    assert names(tree) == ["clusters/own.yaml"]
    why = "it is a link; links are not followed"
    assert tree.skipped == (("clusters/base", why), ("clusters/link.yaml", why))


def test_a_path_through_a_link_is_no_folder_of_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write(tmp_path, outside__a_dot_yaml="a")
    write(root, own_dot_yaml="own")
    (root / "clusters").symlink_to("../outside")
    with pytest.raises(Stalled, match="no folder 'clusters'"):
        WorkingTree(root, Scope.of("clusters", "")).read()


def test_a_file_too_large_is_left_out_and_named(tmp_path: Path) -> None:
    write(tmp_path, a_dot_yaml="x" * 11, b_dot_yaml="x" * 10)
    tree = WorkingTree(tmp_path, limits=TreeLimits(file_bytes=10)).read()
    assert names(tree) == ["b.yaml"]
    assert tree.skipped == (("a.yaml", "it has 11 bytes; 10 is the most a manifest may have"),)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("web.ymal", ".yaml"),
        ("web.YAML", ".yaml"),
        ("web.yaaml", ".yaml"),
        ("web.yal", ".yaml"),
        ("a.jsno", ".json"),
        ("b.ylm", ".yml"),
    ],
)
def test_a_file_whose_name_nearly_ends_as_a_manifest_does_is_named(tmp_path: Path, name: str, meant: str) -> None:
    """It is not read, so what it declared before would be deleted."""
    (tmp_path / name).write_text("x")
    tree = WorkingTree(tmp_path).read()
    suffix = name.partition(".")[2]
    assert tree.skipped == ((name, f"its name ends in .{suffix}, which is nearly {meant}; rename it"),)


@pytest.mark.parametrize(
    "name", ["a.toml", "a.xml", "a.jsonl", "a.json5", "a.md", "a.lock", "yaml", "a.yaml.bak", "a.tf", "a.sh"]
)
def test_files_of_other_formats_are_passed_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    assert WorkingTree(tmp_path).read().skipped == ()


@pytest.mark.parametrize("limits", [TreeLimits(total_bytes=25), TreeLimits(files=2)])
def test_a_tree_too_large_is_refused_as_a_whole(tmp_path: Path, limits: TreeLimits) -> None:
    write(tmp_path, a_dot_yaml="x" * 10, b_dot_yaml="x" * 10, c_dot_yaml="x" * 10)
    with pytest.raises(Stalled, match="the repository has more than 2"):
        WorkingTree(tmp_path, limits=limits).read()


def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    tree = WorkingTree(tmp_path).read()
    assert names(tree) == []
    assert tree.skipped == (("pipe.yaml", "it is a pipe, a socket or a device"),)


def test_rules_that_are_no_file_are_a_stall(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".sourceignore")
    with pytest.raises(Stalled, match="sourceignore cannot be read: it is a pipe"):
        WorkingTree(tmp_path).read()


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


def test_a_git_lfs_pointer_is_no_manifest(tmp_path: Path) -> None:
    write(tmp_path, a_dot_yaml="version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert WorkingTree(tmp_path).read().skipped == (("a.yaml", "it is a Git LFS pointer; commit the file itself"),)


def test_the_last_good_tree_stays_when_the_folder_goes(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write(root, a_dot_yaml="a")
    source = WorkingTree(root)
    source.read()
    root.rename(tmp_path / "elsewhere")
    tree = source.read()
    assert names(tree) == ["a.yaml"]
    assert tree.stalled == ("PathNotFound", f"{root} is not a folder that can be read")
    (tmp_path / "elsewhere").rename(root)
    assert source.read().stalled is None


def test_a_tree_that_takes_too_long_is_a_stall_with_a_reason(tmp_path: Path) -> None:
    write(tmp_path, x_dot_yaml="x")
    with pytest.raises(Stalled, match="more than can be looked through in 0 seconds"):
        WorkingTree(tmp_path, limits=TreeLimits(seconds=0)).read()


def test_a_sourceignore_that_is_too_large_is_a_stall(tmp_path: Path) -> None:
    write(tmp_path, _dot_sourceignore="*a" * 40_000, x_dot_yaml="x")
    with pytest.raises(Stalled, match="larger than 64 KiB") as caught:
        WorkingTree(tmp_path).read()
    assert caught.value.reason == "SourceIgnoreInvalid"


def test_a_pattern_of_many_stars_against_a_long_name(tmp_path: Path) -> None:
    write(tmp_path, _dot_sourceignore="*a" * 40 + "b", x_dot_yaml="x")
    (tmp_path / f"{'a' * 240}.yaml").write_text("long")
    assert len(WorkingTree(tmp_path).read().files) == 2


def test_templates_of_the_repository_are_read_beside_a_subdirectory(tmp_path: Path) -> None:
    write(
        tmp_path,
        clusters__a__x_dot_yaml="x",
        clusters__b__x_dot_yaml="b",
        templates__nodeclaim_dot_yaml_dot_j2="t",
        templates__note_dot_yaml="no manifest for this cluster",
        other__o_dot_j2="no",
    )
    tree = WorkingTree(tmp_path, Scope.of("clusters/a", "templates")).read()
    assert names(tree) == ["clusters/a/x.yaml", "templates/nodeclaim.yaml.j2"]
    assert names(WorkingTree(tmp_path, Scope.of("clusters/a", "clusters/a")).read()) == ["clusters/a/x.yaml"]
    assert names(WorkingTree(tmp_path, Scope.of("clusters/a", "no/such")).read()) == ["clusters/a/x.yaml"]


def test_a_templates_folder_outside_of_the_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="leaves the repository"):
        WorkingTree(tmp_path, Scope.of("", "../templates"))


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
