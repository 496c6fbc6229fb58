"""The forge that a remote is on."""

from __future__ import annotations

import pytest

from reconciler.scaffold.forges import forge_of


@pytest.mark.parametrize(
    ("remote", "forge"),
    [
        ("git@github.com:example/capacity.git", "github"),
        ("https://github.com/example/capacity", "github"),
        ("https://token@github.example.com/example/capacity", "github"),
        ("ssh://git@gitlab.example.com:2222/platform/capacity.git", "gitlab"),
        ("https://GitLab.com/platform/capacity.git", "gitlab"),
        ("gitea.example.com:platform/capacity.git", "gitea"),
        ("https://codeberg.org/example/capacity.git", "gitea"),
        ("https://git.example.com/github/capacity.git", None),
        ("git@git.example.com:gitlab/capacity.git", None),
        ("/srv/git/github.git", None),
        ("", None),
    ],
)
def test_the_hosts_name_tells_the_forge(remote: str, forge: str | None) -> None:
    assert forge_of(remote) == forge
