"""`headroom validate` answers the same for every spelling of a place inside the current folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli.validate import command

SPELLINGS = {
    "absolute": "{here}/sub",
    "absolute with a slash at its end": "{here}/sub/",
    "slash at its end": "sub/",
    "dot first": "./sub",
    "up and down": "sub/../sub",
    "absolute, up and down": "{here}/sub/../sub",
    "through a link to the repository": "{link}/sub",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_every_spelling_gives_the_same_findings(spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, link = tmp_path / "repository", tmp_path / "link"
    (here / "sub" / "templates").mkdir(parents=True)
    link.symlink_to(here)
    (here / "sub" / "templates" / "nodeclaim.yaml.j2").write_text("{{ broken\n")
    (here / "sub" / "pool.yaml").write_text("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\n")
    monkeypatch.chdir(here)

    def told(path: str) -> tuple[int, str]:
        now = ["--output", "json", "--now", "2026-01-01T00:00:00Z"]
        result = CliRunner().invoke(command, [path, *now], standalone_mode=False)
        return result.return_value, result.output

    expected = told("sub")
    assert "sub/templates/nodeclaim.yaml.j2" in expected[1]
    assert told(spelling.format(here=here, link=link)) == expected
