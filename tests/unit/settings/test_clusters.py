"""Several clusters in one settings file: what each has, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.errors import Misused
from reconciler.settings.load import load_one, load_served

TWO = """\
repository: https://git.example/capacity.git
catalog: observed
caps: {newNodesPerPass: 7}
clusters:
  - name: production
    path: clusters/production
    kubeconfig: /etc/clusters/production
    caps: {pricePerHour: 20}
  - name: staging
    path: clusters/staging
    cluster: kubeconfig:staging
    catalog: prices.json
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "headroom.yaml"


def test_each_has_the_common_settings_with_its_own_over_them(file: Path) -> None:
    file.write_text(TWO)
    production, staging = load_served(str(file), environment={"HEADROOM_CATALOG": "other.json"})
    assert (production.name, staging.name) == ("production", "staging")
    assert production.settings.repository == staging.settings.repository == "https://git.example/capacity.git"
    assert (production.settings.path, staging.settings.path) == ("clusters/production", "clusters/staging")
    assert (production.settings.kubeconfig, staging.settings.cluster) == (
        "/etc/clusters/production",
        "kubeconfig:staging",
    )
    assert (production.settings.catalog, staging.settings.catalog) == ("other.json", "prices.json")
    assert (production.settings.caps.new_nodes_per_pass, production.settings.caps.price_per_hour) == (7, 20)
    assert staging.settings.caps.price_per_hour == 0


def test_without_clusters_there_is_one_without_a_name(file: Path) -> None:
    file.write_text("path: clusters/production\n")
    (only,) = load_served(str(file), environment={}, flags={"cluster": "in-cluster"})
    assert (only.name, only.settings.cluster, only.settings.path) == ("", "in-cluster", "clusters/production")


def test_a_command_about_one_cluster_names_it(file: Path) -> None:
    file.write_text(TWO)
    assert load_one(str(file), flags={"cluster": "staging"}).path == "clusters/staging"
    with pytest.raises(Misused) as refused:
        load_one(str(file), flags={})
    assert refused.value.hint == "name one with --cluster: production, staging"
    with pytest.raises(Misused, match="--cluster elsewhere is none of the clusters in"):
        load_one(str(file), flags={"cluster": "elsewhere"})


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        ("[]", r"clusters is \[\], expected a list"),
        ("[{path: a}]", r"clusters\[0\] has no name"),
        ("[{name: Prod_1}]", r"clusters\[0\].name is 'Prod_1', expected lower-case letters"),
        ("[{name: a, listen: 127.0.0.1:1}]", r"\(a\): listen is a setting of the whole process"),
        ("[{name: a, logs: {level: debug}}]", r"\(a\): logs is a setting of the whole process"),
        ("[{name: a, pat: x}]", r"\(a\): there is no setting 'pat', did you mean 'path'"),
        ("[{name: a, cluster: embedded}, {name: a, cluster: in-cluster}]", "a and a have the same name"),
        ("[{name: a, path: x}, {name: b, path: z}]", "a and b have the same cluster and inventory"),
        (
            "[{name: a, kubeconfig: a, snapshot: {publish: true}}, {name: b, kubeconfig: b, snapshot: {publish: true}}]",
            "a and b have the same snapshot.branch",
        ),
        (
            "[{name: a, kubeconfig: a, proposal: {branch: x}}, {name: b, kubeconfig: b, proposal: {branch: x}}]",
            "a and b have the same proposal.branch",
        ),
    ],
)
def test_what_would_not_work_is_refused_with_its_place(file: Path, clusters: str, said: str) -> None:
    file.write_text(f"clusters: {clusters}\n")
    with pytest.raises(Misused, match=said):
        load_served(str(file), environment={})


def test_two_sets_of_manifests_may_be_for_one_cluster_with_an_inventory_each(file: Path) -> None:
    file.write_text("clusters: [{name: a, path: x}, {name: b, path: z, inventory: {name: batch}}]\n")
    assert [each.settings.inventory.name for each in load_served(str(file), environment={})] == ["headroom", "batch"]
