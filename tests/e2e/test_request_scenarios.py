"""ProvisioningRequests on real Karpenter: many at once, one that ran before, and one beside a buffer on the only free node."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.controlplane import eventually
from tests.controlplane.rest import condition
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.research import (
    ATOMIC,
    CHECK,
    FOUND,
    MADE,
    NOT_FOUND,
    REQUEST,
    Research,
    node_pool,
    pod_template,
    request,
)
from tests.e2e.shop import CLAIM, POOL

pytestmark = pytest.mark.e2e

BURST = 1000


def test_a_thousand_requests_in_one_burst_are_all_decided(
    research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    research.api.apply(node_pool())
    research.api.apply(pod_template("10m"))
    research.add_node("large", cpu="32", pods=600)
    with DaemonProcess(repository.folder, kubeconfig, tmp_path) as daemon:
        daemon.wait_until_ready()
        for number in range(BURST):
            research.ask(f"small-{number:04}", class_name=CHECK)

        def decided() -> Counter[str | None]:
            found = Counter(condition(item, "Provisioned") for item in research.api.list(*REQUEST))
            assert None not in found, found
            return found

        answers = eventually(decided, within=240, what="all requests are decided", every=1)
        node = research.api.list("v1", "Node")[0]
        assert answers["True"] == int(node["status"]["allocatable"]["pods"])
        assert answers["True"] + answers["False"] == BURST
        assert research.claims() == {"large"}


def test_a_request_of_git_that_ran_is_not_run_again_by_another_daemon(
    research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    research.api.apply(node_pool())
    research.api.patch(*POOL, "batch", {"spec": {"disruption": {"consolidateAfter": "0s"}}})
    documents = [pod_template("1"), request("train", class_name=ATOMIC)]
    repository.push({"train.yaml": yaml.safe_dump_all(documents)})
    daemon = DaemonProcess(
        repository.folder, kubeconfig, tmp_path, requests_booked_for="5s", requests_kept_for="5s", passes_interval="3s"
    )
    with daemon:
        research.wait_for("train", "Provisioned", MADE)
        eventually(
            lambda: not research.has("train"), within=60, what="the request that has ended is collected", every=0.5
        )
        research.wait_until_nothing_is_left(within=90)
    with daemon:
        eventually(lambda: daemon.status()["passes"] >= 4, within=90, what="four passes of another daemon", every=0.5)
        assert research.claims() == set()
        assert not research.has("train")


@pytest.mark.parametrize("serves", ["true", "false"])
@pytest.mark.parametrize("first", ["request", "buffer"])
def test_a_request_and_a_buffer_with_one_free_node(
    first: str, serves: str, research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    """Room for one pod: the request has it, whoever came first, but for a buffer that came first and serves no request."""
    research.api.apply(node_pool())
    research.api.apply(pod_template("3"))
    research.add_node("free", cpu="4", pods=10)
    kept = first == "buffer" and serves == "false"
    annotations = {"headroom.dev/serves-requests": serves}
    with DaemonProcess(repository.folder, kubeconfig, tmp_path):
        if first == "buffer":
            research.add_buffer(**annotations)
            eventually(lambda: research.buffer_says() == "FitsExistingCapacity", within=60, what="the buffer is full")
            assert research.claims() == {"free"}
        research.ask("check", class_name=CHECK)
        answer = NOT_FOUND if kept else FOUND
        research.wait_for("check", "Provisioned", answer)
        if first == "request":
            research.add_buffer(**annotations)
        nodes = 1 if kept else 2
        eventually(lambda: len(research.claims()) == nodes, within=60, what="who has no room gets a node, or waits")
        eventually(lambda: research.buffer_says() == "FitsExistingCapacity", within=90, what="the buffer is full")
        assert research.conditions("check")["Provisioned"] == answer
        holds = [claim["metadata"].get("annotations", {}) for claim in research.api.list(*CLAIM)]
        assert [each.get("karpenter.sh/do-not-disrupt") for each in holds] == ["true"] * nodes
