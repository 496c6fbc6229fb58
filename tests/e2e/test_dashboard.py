"""A real Prometheus scrapes two daemons and loads the alert rules; each query of the Grafana dashboard then has an answer from it.

One daemon serves one cluster, the other two clusters that are its equals.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import ProgramsMissingError, eventually
from tests.controlplane.ports import free_port
from tests.controlplane.process import Process
from tests.git_repository import GitRepository
from tests.programs import fail_or_skip

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "config" / "monitoring"
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
ABSENT = "headroom_cluster_requests_total"
"""The demo's cluster is embedded, and asked without requests. Queries about them are understood all the same."""
ONE, BOTH = "", "east|west"
"""Values of the dashboard's variable `$cluster`. Metrics of a daemon with one cluster have no such label."""


class Prometheus:
    """Scrapes daemons every second as the ServiceMonitor says, with the alert rules that ship."""

    def __init__(self, folder: Path, targets: list[str]) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        rules = yaml.safe_load((MONITORING / "prometheus_rule.yaml").read_text())["spec"]
        (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
        (endpoint,) = yaml.safe_load((MONITORING / "service_monitor.yaml").read_text())["spec"]["endpoints"]
        scrape = {
            "job_name": "headroom",
            "honor_labels": endpoint["honorLabels"],
            "static_configs": [
                {"targets": targets, "labels": {"namespace": "headroom-system"}}
            ],  # as the operator adds
        }
        settings = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [scrape],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
        arguments = [
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
        ]
        self.process = Process("prometheus", arguments, folder=folder)

    def ask(self, path: str, **query: str) -> Any:
        """The data of an answer; urllib's HTTPError where Prometheus does not understand the question."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def value(self, expression: str, *, at: str = "") -> list[dict[str, Any]]:
        """at: an instant in seconds since 1970, "" for now."""
        found = self.ask("query", query=expression, **({"time": at} if at else {}))["result"]
        assert isinstance(found, list)
        return found


def daemon(folder: Path, settings: dict[str, Any]) -> Process:
    """A daemon that fills the buffers of the demo. settings: more of them, `listen` too."""
    config = folder / f"{settings['listen']}.yaml"
    common = {
        "repository": str(folder / "repository" / "work"),
        "revision": "main",
        "path": "clusters/production",
        "cluster": f"embedded:{ROOT / 'examples-repo' / 'snapshots' / 'production'}",
        "git": {"interval": "1s"},
        "passes": {"interval": "2s"},
    }
    config.write_text(yaml.safe_dump({**common, **settings}))
    environment = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return Process(
        f"headroom-{settings['listen']}",
        ["run", f"--config={config}"],
        folder=folder,
        program=str(Path(sys.executable).with_name("headroom")),
        environment=environment,
    )


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """With some scrapes of daemons that have filled the demo's buffers."""
    folder = tmp_path_factory.mktemp("dashboard")
    repository = GitRepository(folder / "repository")
    shutil.copytree(ROOT / "examples-repo", repository.work, dirs_exist_ok=True)
    repository.commit()
    one, several = (f"127.0.0.1:{free_port()}" for _ in range(2))
    clusters = [{"name": name} for name in BOTH.split("|")]
    try:
        server = Prometheus(folder, [one, several])
    except ProgramsMissingError as error:
        fail_or_skip(str(error))
    with (
        daemon(folder, {"listen": one}),
        daemon(folder, {"listen": several, "clusters": clusters}),
        server.process,
    ):
        full = (
            "count(count by (cluster) (headroom_buffer_fill_ratio)) == 3 and min(headroom_buffer_fill_ratio) == 1"
            " and min(sum by (cluster) (rate(headroom_reconcile_total[10s]))) > 0"
        )
        eventually(lambda: server.value(full), within=90, what="the buffers are full, as Prometheus sees it", every=0.5)
        yield server


def asked(expression: str, clusters: str) -> str:
    """With values for the dashboard's variables, as Grafana puts them in."""
    values = {"$cluster": clusters, "$namespace": ".*", "$buffer": ".*", "$__rate_interval": "10s"}
    for name, value in values.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


@pytest.mark.parametrize("clusters", [ONE, BOTH], ids=["one-cluster", "several"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_dashboard_has_an_answer(query: str, clusters: str, prometheus: Prometheus) -> None:
    expression = asked(query, clusters)
    if ABSENT in query:
        prometheus.value(expression)
    else:
        eventually(lambda: prometheus.value(expression), within=20, what=f"{query} has an answer", every=0.5)


@pytest.mark.parametrize("title", ["Held nodes", "Price of all nodes", "Errors in what is declared"])
def test_of_two_clusters_the_dashboard_sums_up(title: str, prometheus: Prometheus) -> None:
    (panel,) = (panel for panel in DASHBOARD["panels"] if panel["title"] == title)
    query = panel["targets"][0]["expr"]
    instant = str(prometheus.value("time()")[1])
    east, west, both = (
        float(row["value"][1])
        for clusters in (*BOTH.split("|"), BOTH)
        for row in prometheus.value(asked(query, clusters), at=instant)
    )
    assert east + west == pytest.approx(both)
    assert title == "Errors in what is declared" or min(east, west) > 0


@pytest.mark.parametrize(
    ("name", "choices"), [("cluster", {"east", "west"}), ("namespace", {"shop"}), ("buffer", {"web"})]
)
def test_a_variable_of_the_dashboard_has_choices(name: str, choices: set[str], prometheus: Prometheus) -> None:
    (query,) = (each["query"] for each in DASHBOARD["templating"]["list"] if each["name"] == name)
    selector, _, label = asked(query, ".*").removeprefix("label_values(").removesuffix(")").rpartition(", ")
    found = prometheus.ask(f"label/{label}/values", **{"match[]": selector})
    assert choices <= set(found)
    assert "headroom-system" not in found


def test_every_alert_rule_is_loaded_and_evaluated(prometheus: Prometheus) -> None:
    shipped = yaml.safe_load((MONITORING / "prometheus_rule.yaml").read_text())["spec"]["groups"]
    (group,) = prometheus.ask("rules")["groups"]
    assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for one in shipped for rule in one["rules"]]

    def evaluated() -> bool:
        (now,) = prometheus.ask("rules")["groups"]
        assert {(rule["name"], rule["health"]) for rule in now["rules"] if rule["health"] != "ok"} == set()
        return True

    eventually(evaluated, within=20, what="every rule has been evaluated", every=0.5)
