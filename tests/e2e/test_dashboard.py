"""A real Prometheus scrapes the daemon and loads the alert rules; each query of the Grafana dashboard then has an answer from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import ProgramsMissingError, eventually
from tests.controlplane.lifeline import Lifeline
from tests.controlplane.ports import free_port
from tests.controlplane.process import Process
from tests.controlplane.programs import find_program
from tests.e2e.capacity_repository import CapacityRepository
from tests.programs import fail_or_skip

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "config" / "monitoring"
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
ABSENT = "headroom_cluster_requests_total"
"""The demo's cluster is embedded, and asked without requests. Queries about them are understood all the same."""


class Prometheus:
    """Scrapes one daemon every second, with the alert rules that ship."""

    def __init__(self, folder: Path, target: str, lifeline: Lifeline) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        rules = yaml.safe_load((MONITORING / "prometheus_rule.yaml").read_text())["spec"]
        (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
        scrape = {"job_name": "headroom", "static_configs": [{"targets": [target]}]}
        settings = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [scrape],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
        command = [
            str(find_program("prometheus")),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
        ]
        self.process = Process("prometheus", command, folder=folder, lifeline=lifeline)

    def ask(self, path: str, **query: str) -> Any:
        """The data of an answer; urllib's HTTPError where Prometheus does not understand the question."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def value(self, expression: str) -> list[dict[str, Any]]:
        found = self.ask("query", query=expression)["result"]
        assert isinstance(found, list)
        return found


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """With some scrapes of a daemon that has filled the demo's buffers."""
    folder = tmp_path_factory.mktemp("dashboard")
    examples = ROOT / "examples-repo"
    repository = CapacityRepository(folder / "repository")
    subprocess.run(["cp", "-r", f"{examples}/.", repository.folder], check=True)
    repository.push({})
    address = f"127.0.0.1:{free_port()}"
    command = [
        str(Path(sys.executable).with_name("headroom")),
        "run",
        f"--repo={repository.folder}",
        "--revision=main",
        "--path=clusters/production",
        f"--cluster=embedded:{examples / 'snapshots' / 'production'}",
    ]
    environment = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    settings = {"HEADROOM_LISTEN": address, "HEADROOM_GIT_INTERVAL": "1s", "HEADROOM_PASSES_INTERVAL": "2s"}
    lifeline = Lifeline()
    daemon = Process("headroom", command, folder=folder, lifeline=lifeline, environment={**environment, **settings})
    try:
        server = Prometheus(folder, address, lifeline)
    except ProgramsMissingError as error:
        fail_or_skip(str(error))
    try:
        daemon.start()
        server.process.start()
        full = "min(headroom_buffer_fill_ratio) == 1 and sum(rate(headroom_reconcile_total[10s])) > 0"
        eventually(lambda: server.value(full), within=90, what="the buffers are full, as Prometheus sees it", every=0.5)
        yield server
    finally:
        server.process.stop()
        daemon.stop()
        lifeline.close()


def asked(expression: str) -> str:
    """With values for the dashboard's variables, as Grafana puts them in."""
    for name, value in {"$namespace": ".*", "$buffer": ".*", "$__rate_interval": "10s"}.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_dashboard_has_an_answer(query: str, prometheus: Prometheus) -> None:
    if ABSENT in query:
        prometheus.value(asked(query))
    else:
        eventually(lambda: prometheus.value(asked(query)), within=20, what=f"{query} has an answer", every=0.5)


@pytest.mark.parametrize("name", ["namespace", "buffer"])
def test_a_variable_of_the_dashboard_has_choices(name: str, prometheus: Prometheus) -> None:
    (query,) = (each["query"] for each in DASHBOARD["templating"]["list"] if each["name"] == name)
    selector, _, label = asked(query).removeprefix("label_values(").removesuffix(")").rpartition(", ")
    assert prometheus.ask(f"label/{label}/values", **{"match[]": selector})


def test_every_alert_rule_is_loaded_and_evaluated(prometheus: Prometheus) -> None:
    shipped = yaml.safe_load((MONITORING / "prometheus_rule.yaml").read_text())["spec"]["groups"]
    (group,) = prometheus.ask("rules")["groups"]
    assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for one in shipped for rule in one["rules"]]

    def evaluated() -> bool:
        (now,) = prometheus.ask("rules")["groups"]
        assert {(rule["name"], rule["health"]) for rule in now["rules"] if rule["health"] != "ok"} == set()
        return True

    eventually(evaluated, within=20, what="every rule has been evaluated", every=0.5)


def test_panels_overlap_nowhere_and_each_says_what_it_shows() -> None:
    places: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        cells = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & places, panel["title"]
        places |= cells
        assert panel["title"]
        assert all(place[0] < 24 for place in cells)
