"""The command line as a person meets it: what is printed where, and the exit codes that scripts rely on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples-repo"

NODE_POOL = (EXAMPLES / "clusters" / "production" / "nodepools" / "general.yaml").read_text()


def headroom(*words: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    base = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT), "KUBECONFIG": str(folder / "none")}
    return subprocess.run(
        [sys.executable, "-m", "reconciler", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**base, **environment},
    )


def test_validate_finds_nothing_wrong_with_the_examples() -> None:
    done = headroom("validate", "examples-repo/clusters")
    assert done.returncode == 0
    assert "0 errors, 0 warnings" in done.stdout


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


def test_validate_of_nothing_says_so_with_a_hint(tmp_path: Path) -> None:
    done = headroom("validate", "nowhere", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr == ("headroom: nowhere: cannot be read (No such file or directory)\n  name a file or a folder\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("plan", "--cluster", "moon"), 2),
        (("plan", "--detailed-exitcode", "--cluster", "moon"), 1),
        (("plan", "--no-such-flag"), 2),
        (("plan", "--detailed-exitcode", "--no-such-flag"), 1),
        (("diff", "main"), 2),
        (("apply", "--cluster", "moon"), 1),
        (("apply", "--no-such-flag"), 2),
        (("validate", "--output", "xml"), 2),
        (("run", "--cluster", "snapshot:x"), 2),
        (("polish",), 2),
        (("schema", "plan.v9"), 2),
    ],
)
def test_failures_exit_as_the_contract_says_and_never_show_a_traceback(words: tuple[str, ...], code: int) -> None:
    done = headroom(*words)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_without_a_cluster_the_choices_are_named() -> None:
    done = headroom("plan", folder=ROOT / "docs")
    assert done.returncode == 2
    assert "snapshot:PATH" in done.stderr
    assert "embedded" in done.stderr


def test_a_mistyped_command_is_guessed() -> None:
    assert "Did you mean 'validate'?" in headroom("valdate").stderr


def test_a_time_without_an_offset_is_refused() -> None:
    done = headroom("plan", "--now", "2026-11-21T08:00:00")
    assert done.returncode == 2
    assert "write 2026-11-21T08:00:00Z for UTC" in done.stderr


def test_init_writes_a_repository_that_validates(tmp_path: Path) -> None:
    made = headroom("init", "capacity", "--name", "west", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "capacity" / "clusters" / "west" / "buffers.yaml").exists()
    done = headroom("validate", "capacity", folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "0 errors, 0 warnings" in done.stdout


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    done = headroom("init", folder=tmp_path)
    assert done.returncode == 1
    assert "is there already" in done.stderr
    assert (tmp_path / "README.md").read_text() == "mine"


def test_crd_prints_what_headroom_owns() -> None:
    done = headroom("crd", "--output", "json")
    kinds = {item["spec"]["names"]["kind"] for item in json.loads(done.stdout)["items"]}
    assert kinds == {"Buffer", "MetricsProducer", "ProvisioningClass"}


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
    assert "is not a name of a cluster" in done.stderr
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
    assert "snapshot:nowhere takes no writes" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
@pytest.mark.parametrize(("words", "code"), [(("crd",), 1), (("schema", "plan.v1"), 1), (("--help",), 1)])
def test_output_that_cannot_be_written_is_one_plain_line(words: tuple[str, ...], code: int) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (
        code,
        "headroom: the output cannot be written: No space left on device\n",
    )


@pytest.mark.parametrize(("words", "code"), [(("crd",), 1), (("plan", "--cluster", "embedded"), 2)])
def test_a_closed_output_is_one_plain_line(words: tuple[str, ...], code: int) -> None:
    command = ["sh", "-c", 'exec "$0" -m reconciler "$@" >&-', sys.executable, *words]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        code,
        "headroom: there is no standard output to write to: it is closed\n",
    )
