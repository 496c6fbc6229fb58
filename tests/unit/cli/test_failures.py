"""Commands that fail, names that try to act on the reader, and one folder spelt in several ways."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import subprocess
import threading
import unicodedata
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

from reconciler.cli.application import application
from reconciler.web.pages import JSON, Response, kept_page
from reconciler.web.server import PageServer
from tests.headroom_command import headroom_at
from tests.manifests import buffer

ROOT = Path(__file__).resolve().parents[3]


EMBEDDED = ("--cluster", "embedded")
FOLDERS = ("diff", "before", "after", *EMBEDDED)
NO_CLUSTER = "there is no cluster here"
REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    # Words that mean nothing.
    (("polish",), 2, "There is no command 'polish'"),
    (("valdate",), 2, "Did you mean 'validate'?"),
    (("plan", "--no-such-flag"), 2, "--no-such-flag"),
    (("plan", "--detailed-exitcode", "--no-such-flag"), 1, "--no-such-flag"),
    (("apply", "--no-such-flag"), 2, "--no-such-flag"),
    (("validate", "--output", "xml"), 2, "xml"),
    (("validate", "before", "--path", "before"), 2, "give one of them"),
    (("schema", "plan.v9"), 2, "plan.v9"),
    (("crd", "NodePool"), 2, "'provisioningrequest'"),
    (("diff", "main"), 2, "'main' is not BASE..HEAD"),
    *(((command, "before"), 2, "(before). A folder is named with --path.")
      for command in ("plan", "apply", "run", "budgets")),
    (("snapshot", "-o", "x", "y"), 2, "extra argument (y)"),
    (("plan", *EMBEDDED, "--catalog", "http://x/y"), 2, "catalog http://x/y cannot be read"),
    (("plan", "--cluster", "snapshot:before", "--catalog", "karpenter-metrics"), 2, "write karpenter-metrics:http://karpenter.kube-system:8080/metrics"),
    # A cluster that is none, cannot be written, or is not there.
    (("plan", "--cluster", "moon"), 2, "moon"),
    (("plan", "--detailed-exitcode", "--cluster", "moon"), 1, "moon"),
    (("apply", "--cluster", "moon"), 2, "moon"),
    (("release", "--all", "--cluster", "moon"), 2, "moon"),
    (("snapshot", "-o", "x", "--cluster", "moon"), 2, "moon"),
    (("explain", "x", "--cluster", "snapshot:nowhere"), 2, "nowhere"),
    (("run", "--cluster", "snapshot:x"), 2, "A snapshot is read-only"),
    (("apply", "--yes", "--cluster", "snapshot:nowhere"), 2, "snapshot:nowhere is read-only"),
    (("plan",), 2, f"{NO_CLUSTER}: not inside one, and no current context in the kubeconfig /"),
    (("plan", "--detailed-exitcode"), 1, NO_CLUSTER),
    (("diff", "before", "after"), 2, NO_CLUSTER),
    (("apply",), 1, NO_CLUSTER),
    (("budgets",), 1, NO_CLUSTER),
    (("explain", "web"), 1, NO_CLUSTER),
    (("snapshot", "-o", "cluster"), 1, NO_CLUSTER),
    (("release", "--all"), 1, NO_CLUSTER),
    (("run",), 1, NO_CLUSTER),
    # A path that does not exist, or is a pipe that nobody writes into.
    (("validate", "--path", "nowhere"), 2, "nowhere"),
    (("schedule", "nowhere"), 2, "nowhere"),
    (("schedule", "--path", "nowhere"), 2, "nowhere"),
    (("schedule", "--repo", "nowhere"), 2, "nowhere"),
    (("budgets", "--config", "nowhere.yaml"), 2, "nowhere.yaml"),
    (("budgets", "--nodes", "3", "--path", "nowhere"), 2, "nowhere"),
    (("budgets", "--nodes", "3", "--repo", "nowhere"), 2, "nowhere"),
    (("plan", *EMBEDDED, "--path", "nowhere"), 2, "nowhere"),
    (("explain", "CapacityBuffer/shop/web", *EMBEDDED, "--repo", "nowhere"), 2, "nowhere"),
    (("apply", "--yes", *EMBEDDED, "--repo", "nowhere"), 2, "nowhere"),
    (("diff", "main..", *EMBEDDED, "--repo", "nowhere"), 2, "nowhere"),
    (("run", *EMBEDDED, "--repo", "nowhere"), 2, "nowhere"),
    (("validate", "pipe"), 2, "cannot be read (it is a named pipe)"),
    (("plan", "--config", "pipe"), 2, "cannot be read (it is a named pipe)"),
    (("schedule", "pipe"), 2, "cannot be read (it is a named pipe)"),
    (("plan", *EMBEDDED, "--repo", "http://[::1"), 2, "the repository's URL cannot be read"),
    # An address, a time or a name that there cannot be.
    *((("status", "--address", address), 2, f"headroom: {address!r} has no port that a daemon could listen on")
      for address in ("127.0.0.1:99999", "127.0.0.1:http", "localhost:0", "127.0.0.1:")),
    (("status", "--address", "127.0.0.1:1"), 1, "headroom: no daemon answers at 127.0.0.1:1 (Connection refused)"),
    *((("plan", "--now", now), 2, "is not within the years 1000 to 9000")
      for now in ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9990-01-01T00:00:00Z", "0999-12-31T00:00:00Z")),
    *((("init", "capacity", "--name", name), 2, "is not a valid cluster name")
      for name in ("../x", "", "West", "a/b", "-a", "a" * 64)),
    # Flags of posting that would say nothing, and what is not known of the forge.
    ((*FOLDERS, "--post-mode", "new"), 2, "--post-mode does nothing without --post"),
    ((*FOLDERS, "--skip-no-diff", "--pull-request", "7"), 2, "--pull-request, --skip-no-diff do nothing without --post"),
    ((*FOLDERS, "--post", "github", "--pull-request", "0"), 2, "0 is not in the range x>=1"),
    ((*FOLDERS, "--repo", "before"), 2, "--repo says nothing where two folders are compared"),
    ((*FOLDERS, "--post", "github"), 2, "in the CI of a pull request GITHUB_EVENT_PATH or GITHUB_REF has it"),
    ((*FOLDERS, "--post", "gitlab"), 2, "CI_MERGE_REQUEST_IID has it"),
    ((*FOLDERS, "--post", "github", "--pull-request", "7"), 2, "set it, or HEADROOM_FORGE_REPOSITORY, to OWNER/NAME"),
    ((*FOLDERS, "--post", "gitlab", "--pull-request", "7"), 2, "in CI CI_MERGE_REQUEST_PROJECT_ID or CI_PROJECT_ID has it"),
    (("diff", "main..more", *EMBEDDED), 2, "is in no Git repository, so it has no revisions name a Git repository with --repo,"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code", "told"), REFUSED, ids=[" ".join(words) for words, _, _ in REFUSED])
def test_what_cannot_be_done_exits_as_help_states_and_says_why(
    tmp_path: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe")
    there = sorted(tmp_path.iterdir())
    done = headroom_at(tmp_path, *words, HEADROOM_FORGE_TOKEN="of-the-workflow")
    assert done.returncode == code, done.stderr
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(tmp_path.iterdir()) == there


def test_a_daemon_that_has_made_no_pass_yet_is_no_daemon_that_does_not_answer(tmp_path: Path) -> None:
    with closing(PageServer("127.0.0.1:0", {"/status": kept_page(lambda: None, lambda: "", JSON)})) as server:
        server.start()
        done = headroom_at(tmp_path, "status", "--address", server.address)
    assert done.returncode == 1
    assert done.stderr.startswith(f"headroom: the daemon at {server.address} has not made a pass yet")


@pytest.mark.parametrize(
    "body", ["upstream is away", '{"error": "upstream is away"}', '{"message": "upstream is away"}']
)
def test_what_stands_between_headroom_and_a_daemon_may_answer_as_it_likes(tmp_path: Path, body: str) -> None:
    page = Response(body.encode(), JSON, 502)
    with closing(PageServer("127.0.0.1:0", {"/status": lambda: page})) as server:
        server.start()
        done = headroom_at(tmp_path, "status", "--address", server.address)
    assert done.returncode == 1
    assert done.stderr.startswith(f"headroom: the daemon at {server.address} answers: ")
    assert "upstream is away" in done.stderr


@pytest.mark.parametrize("status", ["200 OK", "502 Bad Gateway"])
@pytest.mark.parametrize("is_reset", [True, False])
def test_an_answer_in_a_daemons_place_may_break_off(tmp_path: Path, status: str, is_reset: bool) -> None:  # noqa: FBT001 - a parameter of a test
    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(f'HTTP/1.1 {status}\r\nContent-Length: 100\r\n\r\n{{"a"'.encode())
            if is_reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        done = headroom_at(tmp_path, "status", "--address", address)
    assert (done.returncode, done.stdout) == (1, "")
    assert address in done.stderr
    assert "internal error" not in done.stderr


KUBECONFIG = """
current-context: dead
contexts: [{name: dead, context: {cluster: dead, user: dead}}]
clusters: [{name: dead, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: dead, user: {token: secret}}]
"""


def test_a_kubeconfig_that_is_not_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("clusters: [")
    said = headroom_at(tmp_path, "crd").stderr + headroom_at(tmp_path, "explain", "web").stderr
    assert (
        said.count(f"the kubeconfig {tmp_path / 'kubeconfig'} cannot be used: while parsing a flow node expected") == 2
    )
    assert "defect" not in said


def test_an_address_that_there_cannot_be_is_wrong_usage(tmp_path: Path) -> None:
    done = headroom_at(tmp_path, "run", *EMBEDDED, HEADROOM_LISTEN="8080")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "headroom: '8080' is not an address to listen on")


@pytest.mark.parametrize("words", [("explain", "web"), ("budgets",)])
def test_what_of_a_cluster_could_not_be_read_is_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "buffer.yaml").write_text(buffer(size="replicas: 1"))
    (tmp_path / "cluster").mkdir()
    node = {"metadata": {"name": "n"}, "spec": 5}
    (tmp_path / "cluster" / "nodes.json").write_text(json.dumps({"kind": "List", "items": [node]}))
    said = headroom_at(tmp_path, *words, "--cluster", "snapshot:cluster").stderr
    assert "headroom: this may be wrong: Node/n cannot be read: " in said


@pytest.mark.parametrize("words", [("plan",), ("diff", "before", "after")])
def test_an_api_server_that_does_not_answer_is_told_without_a_revision(tmp_path: Path, words: tuple[str, ...]) -> None:
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    said = headroom_at(tmp_path, *words).stderr.splitlines()
    assert "headroom: https://127.0.0.1:1 does not answer: Connection refused" in said


def test_what_git_could_not_do_is_told_once(tmp_path: Path) -> None:
    said = headroom_at(tmp_path, "plan", "--repo", "https://127.0.0.1:1/x.git", *EMBEDDED).stderr.splitlines()
    assert said[0].startswith("headroom: cannot read https://127.0.0.1:1/x.git: Failed to connect to 127.0.0.1 port 1 ")
    assert said[1:] == ["  check the address and the network; the daemon tries again by itself"]
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    said = headroom_at(tmp_path, "plan", "--revision", "v2", *EMBEDDED).stderr.splitlines()
    assert said[0].endswith(" has no revision 'v2'")
    assert [line.partition(",")[0] for line in said[1:]] == ["  name a branch"]


def test_what_a_url_says_in_its_query_is_not_shown(tmp_path: Path) -> None:
    url = "https://anna:word@localhost:1/x.git?key=SECRET&token=s3"
    done = headroom_at(tmp_path, "plan", *EMBEDDED, "--repo", url)
    assert "localhost:1/x.git?key=***&token=***" in done.stderr
    assert not {"SECRET", "s3", "word"} & set(re.findall(r"\w+", done.stderr))


# A folder of files whose names and contents try to act on whoever reads the output: every command, every output.

NOW = "2026-11-23T08:00:00Z"
NAMES = (
    "a\n::error file=x::forged.yaml",
    "b`](https://evil.example) ![p](https://evil.example/p.png) `.yaml",
    "c\x1b[2J\x1b]0;title\x07.yaml",
    "d\u202egpj.yaml",
    "::error::forged.yaml",
)
WRONG = 'apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: "x\\n# Approved\\u202e"}\nspec: {wieght: 1, "\\u001b[31m": 1}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name.replace("/", "_")).write_text(WRONG)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(application, words, prog_name="headroom", standalone_mode=False)


def is_clean(text: str) -> bool:
    return all(unicodedata.category(letter) not in {"Cc", "Cf", "Cs"} or letter in "\n\u200b" for letter in text)


@pytest.mark.parametrize("output", ["text", "github", "json", "sarif"])
def test_validate(folder: Path, output: str) -> None:
    done = run("validate", str(folder), "--output", output)
    assert done.return_value == 1
    assert is_clean(done.output)
    commands = [line for line in done.output.splitlines() if line.lstrip().startswith("::")]
    assert bool(commands) == (output == "github")
    assert all(re.match(r"::(error|warning|notice) file=[^:,]*,line=\d+,", line) for line in commands)
    if output in {"json", "sarif"}:
        json.loads(done.output)


@pytest.mark.parametrize(
    "words",
    [
        ("schedule",),
        ("budgets", "--nodes", "3"),
        *(("plan", "--cluster", "embedded", "--output", output) for output in ("text", "html", "json")),
    ],
    ids=" ".join,
)
def test_other_commands(folder: Path, words: tuple[str, ...]) -> None:
    done = run(*words, "--repo", str(folder), "--now", NOW)
    assert done.return_value in {0, 1}
    assert is_clean(done.output)
    assert "html" in words or not any(line.lstrip().startswith("::") for line in done.output.splitlines())


def test_the_pull_request_comment(folder: Path) -> None:
    done = run("plan", "--repo", str(folder), "--cluster", "embedded", "--output", "markdown", "--now", NOW)
    assert is_clean(done.output)
    tokens = [child for token in MarkdownIt().parse(done.output) for child in [token, *(token.children or [])]]
    assert not {"link_open", "image"} & {token.type for token in tokens}
    headings = [token for token in tokens if token.type == "heading_open"]
    assert [token.tag for token in headings] == ["h2", "h3"]


# `headroom validate PATH` says the same of a folder however its path is spelt: absolute, relative, through a link.

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a broken template, a file with a warning, and a link to it. The test stands beside it."""
    folder = tmp_path / "capacity"
    (folder / "templates").mkdir(parents=True)
    (folder / "clusters").mkdir()
    (folder / "templates" / "nodeclaim.yaml.j2").write_text("{{ broken")
    (folder / "clusters" / "pool.yaml").write_text(POOL.replace("name: general", "name: general, labels: {x: [1]}"))
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    return folder


def found(*paths: str) -> tuple[int, set[tuple[str, str]]]:
    """Exit code, and code and file of each finding, files from the top of the repository."""
    done = CliRunner().invoke(application, ["validate", *paths, "--output", "json"], standalone_mode=False)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return done.return_value, {(row["code"], "/".join(Path(row["file"]).parts[-2:])) for row in rows}


WAYS = ["capacity", "capacity/", "./capacity", "link", "link/", "capacity/../capacity", "ABSOLUTE", "ABSOLUTE/", "LINK"]


@pytest.mark.parametrize("spelling", WAYS)
def test_every_spelling_of_a_folder_finds_the_same(repository: Path, spelling: str) -> None:
    path = spelling.replace("ABSOLUTE", str(repository)).replace("LINK", str(repository.parent / "link"))
    expected = {("template-failed", "templates/nodeclaim.yaml.j2"), ("wrong-type", "clusters/pool.yaml")}
    assert found(path) == (1, expected)
