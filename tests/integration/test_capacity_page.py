"""The daemon's page of the week ahead, served by the daemon itself on the example and the embedded cluster."""

from __future__ import annotations

import re
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256

import pytest

from tests.controlplane.waiting import eventually
from tests.running_daemon import ROOT, RunningDaemon

EXAMPLES = ROOT / "examples-repo"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    words = ("--repo", str(EXAMPLES), "--path", "clusters/production")
    cluster = f"embedded:{EXAMPLES / 'snapshots' / 'production'}"
    work = tmp_path_factory.mktemp("daemon")
    with RunningDaemon(work, *words, "--cluster", cluster, environment={"TZ": "UTC"}) as daemon:
        yield daemon.address


def page(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/capacity", timeout=10) as response:
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        body: bytes = response.read()
        return body.decode()


def test_it_shows_buffers_schedules_and_budgets(address: str) -> None:
    seen = eventually(lambda: page(address), within=60, what="the page is there")
    for words in ("CapacityBuffer/shop/web", "MetricsProducer/shop/business-hours", "NodePool/general Drifted"):
        assert f"<code>{words}</code>" in seen
    assert '<svg xmlns="http://www.w3.org/2000/svg"' in seen


def test_its_policy_allows_its_own_styles_and_its_own_script(address: str) -> None:
    seen = eventually(lambda: page(address), within=60, what="the page is there")
    with urllib.request.urlopen(f"http://{address}/capacity", timeout=10) as response:
        policy = response.headers["Content-Security-Policy"]
    styles = re.findall("<style>(.*?)</style>", seen, re.DOTALL)
    assert len(styles) == 3, "one of the page, one of each of its two pictures"
    (script,) = re.findall("<script>(.*?)</script>", seen, re.DOTALL)
    for text in (*styles, script):
        assert b64encode(sha256(text.encode()).digest()).decode() in policy
    assert not re.search("<[^>]* style=", seen), "a policy with hashes lets no style attribute through"
    assert "&" not in "".join(styles), "inside a picture a browser reads an entity, and hashes what it means"
