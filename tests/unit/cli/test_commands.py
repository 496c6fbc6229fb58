"""The command line as a person meets it: what is printed where, and the exit codes that scripts rely on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from reconciler.cli.application import COMMANDS
from tests.git_repository import GitRepository
from tests.headroom_command import headroom_at, path_with_headroom

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples-repo"

NODE_POOL = (EXAMPLES / "clusters" / "production" / "nodepools" / "general.yaml").read_text()


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_validate_exits_1_on_an_error_in_every_form(tmp_path: Path, output: str) -> None:
    """Code scanning and remarks beside lines have a file's path in the whole repository, wherever headroom is started."""
    folder = GitRepository(tmp_path).work / "infra"
    folder.mkdir()
    (folder / "pool.yaml").write_text(NODE_POOL.replace("consolidateAfter: 1m", "consolidateAfter: soon"))
    done = headroom_at(folder, "validate", "--output", output)
    assert done.returncode == 1
    assert ("infra/pool.yaml" if output in {"sarif", "github"} else "pool.yaml") in done.stdout
    assert "consolidateAfter" in done.stdout
    assert done.stderr == ""
    if output in {"json", "sarif"}:
        json.loads(done.stdout)


def test_what_a_shell_passes_on_is_read() -> None:
    with subprocess.Popen(["echo", NODE_POOL], stdout=subprocess.PIPE) as writer:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", "plan", "--config", "/dev/stdin"],
            cwd=ROOT, stdin=writer.stdout, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert "there is no setting 'apiVersion'" in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["Buffer", "MetricsProducer", "ProvisioningClass", "ProvisioningRequest"]),
        (("provisioningrequest",), ["ProvisioningRequest"]),
        (("MetricsProducer", "Buffer"), ["Buffer", "MetricsProducer"]),
    ],
)
def test_crd_prints_what_headroom_can_bring_or_the_kinds_that_are_named(
    words: tuple[str, ...], expected: list[str]
) -> None:
    done = headroom_at(ROOT, "crd", *words)
    assert [item["spec"]["names"]["kind"] for item in yaml.safe_load_all(done.stdout)] == expected


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from reconciler.__main__ import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'kubernetes', 'git', 'numpy', 'jinja2', 'yaml', 'jsonschema_rs', 'structlog', 'apscheduler'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr.strip() == "[]"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
@pytest.mark.parametrize("words", [("crd",), ("schema", "plan.v1"), ("--help",)], ids=" ".join)
def test_output_that_cannot_be_written_is_one_plain_line(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "headroom: the output cannot be written: No space left on device\n")


_OUTPUT_OF = {
    "plan": ("--cluster", "embedded"),
    "diff": ("here", "here", "--cluster", "embedded"),
    "apply": ("--yes", "--cluster", "embedded"),
    "validate": (),
    "schedule": (),
    "budgets": ("--cluster", "embedded"),
    "crd": ("--all",),
    "init": ("capacity",),
    "schema": ("plan.v1",),
}
"""Words with which a command prints something on a machine without a cluster."""


@pytest.mark.parametrize("both", [False, True], ids=["output", "errors too"])
@pytest.mark.parametrize(
    "words",
    [*((name, *words) for name, words in _OUTPUT_OF.items()), *((name, "--help") for name in COMMANDS), ("--help",), ("--version",)],
    ids=" ".join,
)  # fmt: skip
def test_a_reader_that_goes_at_once_is_neither_changes_nor_a_failure(
    tmp_path: Path, *, words: tuple[str, ...], both: bool
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "pool.yaml").write_text(NODE_POOL)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        done = subprocess.run(
            ["headroom", *words],
            cwd=tmp_path,
            env={"PATH": path_with_headroom(), "HOME": str(tmp_path)},
            stdout=gone,
            stderr=gone if both else subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr or "") == (141, "")


@pytest.mark.parametrize(("words", "code"), [(("crd",), 1), (("plan", "--cluster", "embedded"), 2)])
def test_a_closed_output_is_one_plain_line(words: tuple[str, ...], code: int) -> None:
    command = ["sh", "-c", 'exec "$0" -m reconciler "$@" >&-', sys.executable, *words]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "headroom: there is no standard output to write to: it is closed\n")


@pytest.mark.parametrize("output", ["text", "sarif"])
def test_strict_makes_a_warning_an_error(tmp_path: Path, output: str) -> None:
    (tmp_path / "pool.yaml").write_text(NODE_POOL.replace("  weight:", "  heaviness:"))
    lenient = headroom_at(tmp_path, "validate", "--output", output)
    strict = headroom_at(tmp_path, "validate", "--output", output, "--strict")
    assert (lenient.returncode, strict.returncode) == (0, 1)
    assert "warning" in lenient.stdout
    assert "error" in strict.stdout


def test_validate_of_an_empty_folder_says_so(tmp_path: Path) -> None:
    done = headroom_at(tmp_path, "validate")
    assert done.returncode == 0
    assert done.stderr == "No manifest was found in this folder: files that end in .yaml, .yml and .json are read.\n"


def test_two_clusters_at_the_root_are_named(tmp_path: Path) -> None:
    for cluster in ("production", "staging"):
        (tmp_path / "clusters" / cluster).mkdir(parents=True)
        (tmp_path / "clusters" / cluster / "pool.yaml").write_text(
            NODE_POOL.replace("name: general", f"name: {cluster}")
        )
    merged = headroom_at(tmp_path, "plan", "--cluster", "embedded")
    assert (
        "warning: 2 clusters are read as one: clusters/production, clusters/staging [several-clusters]" in merged.stdout
    )
    assert "give the folder of one: --path clusters/production" in merged.stdout
    for words in (("--path", "clusters/production"), ("--path", "clusters/staging")):
        assert "several-clusters" not in headroom_at(tmp_path, "plan", "--cluster", "embedded", *words).stdout
    assert "several-clusters" not in headroom_at(tmp_path, "validate").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_for_each_shell_prints_its_completion(shell: str) -> None:
    setting = f"_HEADROOM_COMPLETE={shell}_source"
    assert f"{setting} headroom" in (ROOT / "docs" / "README.md").read_text()
    name, _, value = setting.partition("=")
    program = Path(sys.executable).with_name("headroom")
    environment = {"PATH": "/usr/bin:/bin", name: value}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"_HEADROOM_COMPLETE={shell}_complete" in done.stdout


def test_help_names_every_exit_code() -> None:
    told = headroom_at(ROOT, "--help").stdout.partition("Exit codes:")[2]
    assert "plan, diff   0 no change, 1 changes, 2 any error" in told
    assert "all others   0 done, 1 a failure, 2 wrong usage" in told
    assert "with --detailed-exitcode: 0 no change, 2 changes, 1 any error or such a bound" in told
    assert "validate, budgets and schedule: 1 also for an error in the manifests" in told
    assert "Ctrl-C is 130" in told
