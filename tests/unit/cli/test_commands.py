"""The command line as a person meets it: what is printed where, and the exit codes that scripts rely on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.cli.application import COMMANDS
from tests import headroom_command

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples-repo"

NODE_POOL = (EXAMPLES / "clusters" / "production" / "nodepools" / "general.yaml").read_text()


def headroom(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    base = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "KUBECONFIG": str(folder / "kubeconfig")}
    return headroom_command.headroom(*words, folder=folder, environment=base)


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_validate_exits_1_on_an_error_in_every_form(tmp_path: Path, output: str) -> None:
    (tmp_path / "pool.yaml").write_text(NODE_POOL.replace("consolidateAfter: 1m", "consolidateAfter: soon"))
    done = headroom("validate", "--output", output, folder=tmp_path)
    assert done.returncode == 1
    assert "pool.yaml" in done.stdout
    assert "consolidateAfter" in done.stdout
    assert done.stderr == ""
    if output in {"json", "sarif"}:
        json.loads(done.stdout)


@pytest.mark.parametrize("words", [("validate", "pipe"), ("plan", "--config", "pipe"), ("schedule", "pipe")])
def test_a_named_pipe_that_nobody_writes_into_is_not_waited_for(tmp_path: Path, words: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = headroom(*words, folder=tmp_path)
    assert done.returncode == 2
    assert "cannot be read (it is a named pipe)" in done.stderr


def test_what_a_shell_passes_on_is_read() -> None:
    with subprocess.Popen(["echo", NODE_POOL], stdout=subprocess.PIPE) as writer:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", "plan", "--config", "/dev/stdin"],
            cwd=ROOT, stdin=writer.stdout, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert "there is no setting 'apiVersion'" in done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:http", "localhost:0", "127.0.0.1:"])
def test_a_port_that_there_cannot_be_is_no_daemon_that_does_not_answer(address: str) -> None:
    done = headroom("status", "--address", address)
    assert done.returncode == 2
    assert done.stderr.startswith(f"headroom: {address!r} has no port that a daemon could listen on\n")


def test_a_daemon_that_does_not_answer_is_told_without_the_number_of_the_error() -> None:
    done = headroom("status", "--address", "127.0.0.1:1")
    assert done.stderr.startswith("headroom: no daemon answers at 127.0.0.1:1 (Connection refused)\n")


def test_a_mistyped_command_is_guessed() -> None:
    assert "Did you mean 'validate'?" in headroom("valdate").stderr


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    done = headroom("init", folder=tmp_path)
    assert done.returncode == 1
    assert "already exists" in done.stderr
    assert (tmp_path / "README.md").read_text() == "mine"


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
    done = headroom("crd", *words, "--output", "json")
    assert [item["spec"]["names"]["kind"] for item in json.loads(done.stdout)["items"]] == expected


def test_crd_names_its_kinds_when_it_does_not_know_one() -> None:
    done = headroom("crd", "NodePool")
    assert done.returncode == 2
    assert "'provisioningrequest'" in done.stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from reconciler.__main__ import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'kubernetes', 'git', 'numpy', 'jinja2', 'yaml', 'jsonschema_rs', 'structlog', 'apscheduler'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("name", ["../x", "", "West", "a/b", "-a", "a" * 64])
def test_init_refuses_a_name_that_is_no_dns_label(tmp_path: Path, name: str) -> None:
    done = headroom("init", "capacity", "--name", name, folder=tmp_path)
    assert done.returncode == 2
    assert "is not a valid cluster name" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_init_onto_a_file_says_which_and_why(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    done = headroom("init", "taken", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("headroom: taken/")
    assert "cannot be written (" in done.stderr


def test_init_of_the_example_names_its_snapshot(tmp_path: Path) -> None:
    done = headroom("init", "--example", "capacity", folder=tmp_path)
    assert "--path clusters/production --cluster embedded:snapshots/production" in done.stdout
    assert (tmp_path / "capacity" / "clusters" / "production" / "buffers" / "shop.yaml").is_file()


@pytest.mark.parametrize(
    "now",
    [
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
        "9990-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0999-12-31T00:00:00Z",
    ],
)
def test_a_time_outside_the_calendar_is_refused(now: str) -> None:
    done = headroom("plan", "--now", now)
    assert done.returncode == 2
    assert "is not within the years 1000 to 9000" in done.stderr


def test_a_url_that_no_parser_takes_is_refused() -> None:
    done = headroom("plan", "--cluster", "embedded", "--repo", "http://[::1")
    assert done.returncode == 2
    assert "the repository's URL cannot be read" in done.stderr


def test_apply_to_a_snapshot_is_refused_before_anything_is_read() -> None:
    done = headroom("apply", "--yes", "--cluster", "snapshot:nowhere")
    assert done.returncode == 2
    assert "snapshot:nowhere is read-only" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
@pytest.mark.parametrize(("words", "code"), [(("crd",), 1), (("schema", "plan.v1"), 1), (("--help",), 1)])
def test_output_that_cannot_be_written_is_one_plain_line(words: tuple[str, ...], code: int) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (code, "headroom: the output cannot be written: No space left on device\n")


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
            env={"PATH": headroom_command.path_with_headroom(), "HOME": str(tmp_path)},
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


@pytest.mark.parametrize(
    "words",
    [
        ("validate", "--path", "nowhere"),
        ("schedule", "nowhere"),
        ("schedule", "--path", "nowhere"),
        ("budgets", "--nodes", "3", "--path", "nowhere"),
        ("plan", "--cluster", "embedded", "--path", "nowhere"),
        ("schedule", "--repo", "nowhere"),
        ("budgets", "--nodes", "3", "--repo", "nowhere"),
        ("explain", "CapacityBuffer/shop/web", "--cluster", "embedded", "--repo", "nowhere"),
        ("apply", "--yes", "--cluster", "embedded", "--repo", "nowhere"),
        ("diff", "main..", "--cluster", "embedded", "--repo", "nowhere"),
        ("run", "--cluster", "embedded", "--repo", "nowhere"),
    ],
)
def test_a_path_that_does_not_exist_is_a_usage_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = headroom(*words, folder=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_validate_takes_path_as_the_other_commands_do(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pool.yaml").write_text(NODE_POOL)
    assert "1 document in 1 file" in headroom("validate", "--path", "a", folder=tmp_path).stdout
    assert headroom("validate", "a", "--path", "a", folder=tmp_path).returncode == 2


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_strict_makes_a_warning_an_error(tmp_path: Path, output: str) -> None:
    (tmp_path / "pool.yaml").write_text(NODE_POOL.replace("  weight:", "  heaviness:"))
    lenient = headroom("validate", "--output", output, folder=tmp_path)
    strict = headroom("validate", "--output", output, "--strict", folder=tmp_path)
    assert (lenient.returncode, strict.returncode) == (0, 1)
    assert "warning" in lenient.stdout
    assert "error" in strict.stdout


def test_validate_of_an_empty_folder_says_so(tmp_path: Path) -> None:
    done = headroom("validate", folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr == "No manifest was found in this folder: files that end in .yaml, .yml and .json are read.\n"


def test_two_clusters_at_the_root_are_named(tmp_path: Path) -> None:
    for cluster in ("production", "staging"):
        (tmp_path / "clusters" / cluster).mkdir(parents=True)
        (tmp_path / "clusters" / cluster / "pool.yaml").write_text(
            NODE_POOL.replace("name: general", f"name: {cluster}")
        )
    merged = headroom("plan", "--cluster", "embedded", folder=tmp_path)
    assert (
        "warning: 2 clusters are read as one: clusters/production, clusters/staging [several-clusters]" in merged.stdout
    )
    assert "give the folder of one: --path clusters/production" in merged.stdout
    for words in (("--path", "clusters/production"), ("--path", "clusters/staging")):
        assert "several-clusters" not in headroom("plan", "--cluster", "embedded", *words, folder=tmp_path).stdout
    assert "several-clusters" not in headroom("validate", folder=tmp_path).stdout


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
    told = headroom("--help").stdout.partition("Exit codes:")[2]
    assert "with --detailed-exitcode: 0 no change, 2 changes, 1 any error or such a bound" in told
    assert "validate, budgets and schedule: 1 also for an error in the manifests" in told
    assert "Ctrl-C is 130" in told
