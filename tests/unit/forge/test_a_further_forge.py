"""A forge is one file and one line: a copy of the product gets another one, and every way to a forge knows it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.source_tree import copy_of_the_product

# What a newcomer would write: a copy of Gitea's file with another name, other hosts and other headers.
PROGRAM = """
import hashlib, hmac
from reconciler.forge.forges import forge_token, links_to, name_of, open_forge, read_webhook
from reconciler.settings.load import load_settings

settings = load_settings(None, environment={"HEADROOM_FORGE_KIND": "forgery"})
assert settings.forge.kind == "forgery"
token = forge_token("forgery")
assert open_forge("forgery", repository="shop/capacity", token=token, api="https://git.example.com/api/v1").name == "Gitea"
assert name_of("git@forgery.example.com:shop/capacity.git") == "forgery"
page = links_to("git@forgery.example.com:shop/capacity.git").line("main@sha1:" + "a" * 40, "a.yaml", 7)
assert page == "https://forgery.example.com/shop/capacity/src/commit/" + "a" * 40 + "/a.yaml#L7"
body = b'{"ref": "refs/heads/main"}'
proof = hmac.new(b"secret", body, hashlib.sha256).hexdigest()
assert read_webhook({"x-forgery-event": "push", "x-forgery-signature": proof}, body, "secret").branch == "main"

from reconciler.cli.init import init_command
from reconciler.cli.diff import diff_command
for command in (init_command, diff_command):
    assert any("forgery" in getattr(option.type, "choices", ()) for option in command.params), command.name
"""


def test_a_further_forge_is_one_file_and_one_line(tmp_path: Path) -> None:
    forges = copy_of_the_product(tmp_path) / "reconciler" / "forge"
    text = (forges / "gitea.py").read_text()
    (forges / "forgery.py").write_text(
        re.sub(r"x-gitea", "x-forgery", text).replace('"gitea", "forgejo", "codeberg"', '"forgery"')
    )
    names = forges / "__init__.py"
    names.write_text(names.read_text().replace('"gitea")', '"gitea", "forgery")'))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "GITEA_TOKEN": "t"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
