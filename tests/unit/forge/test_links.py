"""The forge that a remote is on, and links to a commit and to a line of a file, by the repository's address."""

import pytest

from reconciler.forge.forges import links_to, name_of

REVISION = "main@sha1:" + "4f1c8a90" * 5
COMMIT = "4f1c8a90" * 5


@pytest.mark.parametrize(
    ("remote", "forge"),
    [
        ("git@github.com:example/capacity.git", "github"),
        ("https://token@github.example.com/example/capacity", "github"),
        ("ssh://git@gitlab.example.com:2222/platform/capacity.git", "gitlab"),
        ("https://GitLab.com/platform/capacity.git", "gitlab"),
        ("gitea.example.com:platform/capacity.git", "gitea"),
        ("https://codeberg.org/example/capacity.git", "gitea"),
        ("https://git.example.com/github/capacity.git", ""),
        ("git@git.example.com:gitlab/capacity.git", ""),
        ("/srv/git/github.git", ""),
        ("", ""),
    ],
)
def test_the_hosts_name_tells_the_forge(remote: str, forge: str) -> None:
    assert name_of(remote) == forge


@pytest.mark.parametrize(
    ("repository", "kind", "commit", "line"),
    [
        (
            "https://github.com/shop/capacity.git",
            "",
            "https://github.com/shop/capacity/commit/",
            "https://github.com/shop/capacity/blob/",
        ),
        (
            "https://bot:s3cret@github.com/shop/capacity",
            "",
            "https://github.com/shop/capacity/commit/",
            "https://github.com/shop/capacity/blob/",
        ),
        (
            "git@gitlab.com:shop/teams/capacity.git",
            "",
            "https://gitlab.com/shop/teams/capacity/-/commit/",
            "https://gitlab.com/shop/teams/capacity/-/blob/",
        ),
        (
            "ssh://git@codeberg.org:2222/shop/capacity.git",
            "",
            "https://codeberg.org/shop/capacity/commit/",
            "https://codeberg.org/shop/capacity/src/commit/",
        ),
        (
            "http://git.example.com:3000/shop/capacity",
            "gitea",
            "http://git.example.com:3000/shop/capacity/commit/",
            "http://git.example.com:3000/shop/capacity/src/commit/",
        ),
    ],
)
def test_each_forge_has_its_own_addresses(repository: str, kind: str, commit: str, line: str) -> None:
    links = links_to(repository, kind)
    assert links.commit(REVISION) == f"{commit}{COMMIT}"
    assert links.line(REVISION, "teams/a b.yaml", 7) == f"{line}{COMMIT}/teams/a%20b.yaml#L7"


@pytest.mark.parametrize(
    "repository",
    [
        "",
        ".",
        "/srv/git/capacity.git",
        "file:///srv/capacity.git",
        "https://git.example.com/shop/capacity",
        "https://[",
        "https://github.com/",
    ],
)
def test_without_a_forge_there_are_no_links(repository: str) -> None:
    links = links_to(repository)
    assert links.commit(REVISION) is None
    assert links.line(REVISION, "a.yaml", 7) is None


def test_files_that_were_not_committed_have_no_links() -> None:
    links = links_to("https://github.com/shop/capacity")
    assert links.commit(None) is None
    assert links.line("main@sha1:", "a.yaml", 7) is None
    assert links.line(REVISION, None, None) is None
