"""The page of the catalog file: its example is loaded, launched by the embedded cluster, and its message is the one that is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reconciler.catalog.file import FileCatalog
from reconciler.model.errors import Invalid
from reconciler.model.view import ClusterView
from reconciler.settings.settings import Settings
from reconciler.wiring.inputs import open_cluster
from tests.fakes.clock import ManualClock

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "catalog.md").read_text()


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    found = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    file = tmp_path / "catalog.json"
    file.write_text(found[1])
    return file


def test_the_example_is_a_catalog(catalog: Path) -> None:
    loaded = FileCatalog(catalog)
    gpu, general = loaded.instance_types(ClusterView())
    assert (general.name, general.offerings[0].price, general.allocatable.quantities()["cpu"]) == (
        "m-4x",
        0.192,
        "3920m",
    )
    assert [offering.zone for offering in gpu.offerings] == ["zone-a", "zone-b"]
    assert "2026-11-21" in loaded.source


def test_the_embedded_cluster_launches_what_the_file_names(catalog: Path) -> None:
    cluster = open_cluster(Settings(cluster="embedded", catalog=str(catalog)), ManualClock())
    try:
        assert [kind.name for kind in cluster.view().catalog] == ["g-8x", "m-4x"]
    finally:
        cluster.close()


def test_the_message_is_the_one_that_is_told(catalog: Path) -> None:
    document = json.loads(catalog.read_text())
    document["instanceTypes"][0]["resources"]["memory"] = "16 GB"
    catalog.write_text(json.dumps(document))
    with pytest.raises(Invalid) as raised:
        FileCatalog(catalog).instance_types(ClusterView())
    assert raised.value.message.partition("catalog.json: ")[2] in PAGE
    assert raised.value.hint in PAGE
