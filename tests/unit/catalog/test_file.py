"""A catalog in a file: read once, read again when it changes, refused with a place when it is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.catalog.file import FileCatalog
from reconciler.manifests.instance_types import instance_types_document
from reconciler.model.errors import Invalid, Misused
from reconciler.model.view import ClusterView
from tests.builders import instance_type


def write(path: Path, *names: str) -> None:
    path.write_text(json.dumps(instance_types_document(instance_type(name) for name in names)))


def test_types_are_those_of_the_file_and_follow_it(tmp_path: Path) -> None:
    path = tmp_path / "instance_types.json"
    write(path, "m-4x", "c-4x")
    catalog = FileCatalog(path)
    assert [item.name for item in catalog.instance_types(ClusterView())] == ["c-4x", "m-4x"]
    assert catalog.instance_types(ClusterView()) is catalog.instance_types(ClusterView())
    write(path, "m-4x", "c-4x", "s-4x")
    assert [item.name for item in catalog.instance_types(ClusterView())] == ["c-4x", "m-4x", "s-4x"]


@pytest.mark.parametrize(
    ("as_of", "when"),
    [
        ("", "undated: it has no asOf"),
        ("2026-11-21", "prices as of 2026-11-21"),
        ("2026-11-21T08:30:00Z", "prices as of 2026-11-21 08:30 UTC"),
    ],
)
def test_the_source_names_the_file_and_its_date(tmp_path: Path, as_of: str, when: str) -> None:
    """The time of the file itself would be that of the checkout."""
    path = tmp_path / "prices.json"
    write(path, "m-4x")
    if as_of:
        path.write_text(json.dumps({"asOf": as_of, "instanceTypes": json.loads(path.read_text())}))
    catalog = FileCatalog(path)
    assert [item.name for item in catalog.instance_types(ClusterView())] == ["m-4x"]
    assert catalog.source == f"file {path}, {when}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[\n  {"name": }\n]', "{path}:2:12: is not JSON (Expecting value)"),
        (b"\xff\xfe\xff", "catalog {path} is not text in UTF-8"),
        (b'{"asOf": "soon", "instanceTypes": []}', "{path}: asOf of a catalog is a date, not a string"),
        (b'[{"name": "m"}]', "{path}: instance type m: object missing required field `architecture`"),
        (b"[" * 100_000, "catalog {path} is nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "catalog {path} has a number that is too large"),
        (b'[{"name": "\\ud800"}]', "catalog {path} has half of a surrogate pair, which no text can hold"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(Invalid) as caught:
        FileCatalog(path).instance_types(ClusterView())
    assert caught.value.message == message.format(path=path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="No such file or directory"):
        FileCatalog(tmp_path / "none.json").instance_types(ClusterView())


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="No such file"):
        FileCatalog(tmp_path / "typo.json").instance_types(ClusterView())
