"""The files of a first repository, and which Deployment its first buffer is for."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml

from reconciler.files import packaged_texts
from reconciler.forge import FORGES
from reconciler.forge.forges import kind_of
from reconciler.manifests.repository.declared import read
from reconciler.model.buffers import Buffer
from reconciler.model.pods import PodShape, Workload
from reconciler.model.refs import ObjectRef
from reconciler.scaffold import FirstRepository, candidate, chunks_for, next_steps, repository_files
from tests.builders import buffer, deployment

# The files of a first repository: what they hold, and what their CI does.

PACKAGED = packaged_texts("config/scaffold")
FOLLOWING = "  annotations: {headroom.dev/replicas-from: business-hours}\n"


def files_of(first: FirstRepository) -> dict[str, str]:
    return repository_files(first, PACKAGED)


def test_without_a_cluster_there_is_a_node_pool_too() -> None:
    assert set(files_of(FirstRepository("west"))) == {
        "README.md",
        ".pre-commit-config.yaml",
        ".sourceignore",
        "clusters/west/buffers.yaml",
        "clusters/west/nodepools.yaml",
    }


@pytest.mark.parametrize(("namespace", "name"), [("shop", "web"), ("123", "true"), ("1e3", "1.5"), ("cluster", "name")])
def test_the_buffer_is_the_deployments_whatever_that_is_called(namespace: str, name: str) -> None:
    target = deployment(name, namespace=namespace, replicas=40)
    files = files_of(FirstRepository("west", seen=True, target=target))
    assert "clusters/west/nodepools.yaml" not in files
    declared = read({"buffers.yaml": files["clusters/west/buffers.yaml"].encode()})
    (buffer,) = declared.buffers
    assert (buffer.target, buffer.replicas) == (target.ref, 8)
    assert (buffer.ref.namespace, buffer.ref.name) == (namespace, name)
    assert f"8 more pods of the Deployment `{name}`" in files["clusters/west/buffers.yaml"]


@pytest.mark.parametrize("target", [None, deployment("web", namespace="shop", replicas=40)])
def test_the_schedule_below_the_buffer_is_a_comment_that_can_be_taken_in(target: Workload | None) -> None:
    text = files_of(FirstRepository("west", seen=True, target=target))["clusters/west/buffers.yaml"]
    buffers, _, schedule = text.partition("# ---\n")
    assert read({"buffers.yaml": text.encode()}).schedules == ()
    both = f"{buffers}---\n{schedule.replace('# ', '')}"
    declared = read({"buffers.yaml": both.replace("  name: web\n", f"  name: web\n{FOLLOWING}", 1).encode()})
    assert {finding.code for finding in declared.findings} <= {"not-in-repository"}
    assert declared.schedules[0].behaviors[0].replicas == declared.buffers[0].replicas
    assert declared.schedules[0].ref.namespace == declared.buffers[0].ref.namespace


@pytest.mark.parametrize("forge", FORGES)
@pytest.mark.parametrize(
    ("first", "planned_on"),
    [
        (FirstRepository("west"), "embedded"),
        (FirstRepository("west", seen=True), "snapshot:snapshots/west"),
        (FirstRepository("west", seen=True, cluster_flag="kubeconfig:a"), "snapshot:snapshots/west"),
        (FirstRepository("west", seen=True, cluster_flag="snapshot:kept"), "snapshot:kept"),
    ],
)
def test_ci_validates_and_plans_without_a_cluster(forge: str, first: FirstRepository, planned_on: str) -> None:
    text = files_of(replace(first, forge=forge, ci_file=kind_of(forge).ci_file))[kind_of(forge).ci_file]
    assert yaml.safe_load(text)
    assert re.search(
        r"headroom validate( --output github)?$", text, re.MULTILINE
    )  # no warning turns main red for everybody
    assert text.count(f"--path clusters/west --cluster {planned_on} --output markdown") == 2
    assert "CLUSTER" not in text


def test_no_word_of_the_scaffold_is_left_over() -> None:
    for first in (FirstRepository("west"), FirstRepository("west", seen=True, target=deployment())):
        for text in files_of(first).values():
            assert not {"CLUSTER", "PLANNED_ON", "CHUNKS", "TARGET", "NAMESPACE"} & set(text.replace("/", " ").split())


def test_the_next_steps_name_the_cluster_that_was_given() -> None:
    steps = next_steps(FirstRepository("west", seen=True, cluster_flag="kubeconfig:my west"))
    assert "headroom plan --path clusters/west --cluster 'kubeconfig:my west'" in steps
    assert "headroom snapshot -o snapshots/west --cluster 'kubeconfig:my west'" in steps
    assert "headroom run --path clusters/west --cluster 'kubeconfig:my west' --until-settled" in steps
    assert all("--context 'my west'" in step for step in steps if "kubectl" in step)
    assert not any(
        "--cluster" in step or "--context" in step for step in next_steps(FirstRepository("west", seen=True))
    )


def test_a_snapshot_is_planned_and_not_run() -> None:
    assert next_steps(FirstRepository("west", seen=True, cluster_flag="snapshot:kept")) == (
        "headroom validate --strict",
        "headroom plan --path clusters/west --cluster snapshot:kept",
    )


# Which Deployment a first buffer is for.


def test_the_largest_deployment_is_chosen_and_of_equal_ones_the_first_by_name() -> None:
    found = candidate([deployment("a", replicas=2), deployment("c", replicas=7), deployment("b", replicas=7)], [])
    assert found is not None
    assert found.ref.name == "b"


@pytest.mark.parametrize("namespace", ["kube-system", "headroom-system"])
def test_the_clusters_own_deployments_are_passed_over(namespace: str) -> None:
    assert candidate([deployment("coredns", namespace=namespace)], []) is None


@pytest.mark.parametrize("replicas", [None, 0])
def test_one_without_pods_is_passed_over(replicas: int | None) -> None:
    assert candidate([deployment(replicas=replicas)], []) is None


def test_pods_without_requests_are_passed_over() -> None:
    assert candidate([deployment(pod_shape=PodShape("shop")), replace(deployment("bare"), shape=None)], []) is None


def test_other_kinds_are_passed_over() -> None:
    stateful = replace(deployment(), ref=ObjectRef("apps", "StatefulSet", "shop", "web"))
    assert candidate([stateful], []) is None


@pytest.mark.parametrize("taken", [buffer("spare", target="web"), buffer("web", target="api")])
def test_one_that_has_a_buffer_or_whose_name_a_buffer_has_is_passed_over(taken: Buffer) -> None:
    found = candidate([deployment("web", replicas=9), deployment("cart", replicas=1)], [taken])
    assert found is not None
    assert found.ref.name == "cart"


@pytest.mark.parametrize(("replicas", "chunks"), [(1, 3), (15, 3), (16, 4), (20, 4), (21, 5), (100, 20)])
def test_a_buffer_is_a_fifth_and_at_least_three(replicas: int, chunks: int) -> None:
    assert chunks_for(replicas) == chunks
