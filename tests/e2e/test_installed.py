"""The daemon installed word for word from docs/operations.md on the real control plane: the chart's objects and RBAC, the image's root file
system, and the token that the API server gives the chart's account. The first buffer is then full within three minutes.

No kubelet runs here, so `tests/image/pod.py` does for one pod what a kubelet would. It has the network of the host: the daemon listens on a
free port of it. The KWOK provider exports no prices: the catalog is a file of the settings' ConfigMap.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.controlplane import ControlPlane, ProgramsMissingError, eventually
from tests.controlplane.definitions import ALL, undefine
from tests.controlplane.ports import free_port
from tests.controlplane.programs import find_data, find_program
from tests.docs.first_hour import typed
from tests.e2e.daemon_process import NAMESPACE, USER
from tests.e2e.shop import BUFFER_OF_FOUR, NODE_POOL, Shop
from tests.git_repository import GitRepository
from tests.image.build import Image
from tests.image.pod import Pod
from tests.integration.git_server import GitHttpServer
from tests.kubeconfigs import cluster_of, token_of
from tests.programs import fail_or_skip, program

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "of-the-repository"


def documented() -> tuple[str, list[str]]:
    """The values and the lines of the page."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.partition("### With Helm\n")[2].partition("\n### ")[0]
    values, lines = (re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)[0] for language in ("yaml", "sh"))
    return values, lines.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A clone of headroom, as far as the lines need it, with the token."""
    (tmp_path / "clone").mkdir()
    for name in ("chart", "config"):
        (tmp_path / "clone" / name).symlink_to(ROOT / name)
    (tmp_path / "clone" / "token").write_text(TOKEN)
    return tmp_path / "clone"


@pytest.fixture
def git_server(tmp_path: Path) -> Iterator[GitHttpServer]:
    """A private repository over HTTP with the shop's NodePool and buffer."""
    repository = GitRepository(tmp_path / "repository")
    repository.push({"clusters/production/pool.yaml": NODE_POOL, "clusters/production/buffers.yaml": BUFFER_OF_FOUR})
    with GitHttpServer(repository.served) as server:
        server.token = TOKEN
        yield server


@pytest.fixture
def installed(folder: Path, git_server: GitHttpServer, empty_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    program("kubectl", install="kubectl")
    try:
        helm = find_program("helm").parent
    except ProgramsMissingError as error:
        fail_or_skip(str(error))
    plane = empty_control_plane
    plane.api.delete("v1", "Namespace", NAMESPACE)  # which an earlier test may have made
    eventually(
        lambda: plane.api.get("v1", "Namespace", NAMESPACE) is None, within=60, what="no namespace of headroom's"
    )
    text, lines = documented()
    values = yaml.safe_load(text)
    assert urlsplit(values["settings"]["repository"]).scheme == "https"
    values["settings"] |= {"repository": git_server.url, "catalog": "/etc/headroom/catalog.json"}
    values["files"] = {"catalog.json": json.dumps(few_types())}
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    path = f"{helm}:{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    done = typed(lines, folder, KUBECONFIG=str(plane.kubeconfig()), PATH=path)
    assert {line: told for line, told in done.items() if told[0] != 0} == {}
    yield plane
    remove(plane, folder, path)


def few_types() -> list[dict[str, Any]]:
    """Those that the shop's NodePool allows: a ConfigMap holds no more than a megabyte."""
    types = json.loads(find_data("instance_types.json").read_text())
    return [each for each in types if re.search(r"-[48]x-amd64-linux$", each["name"])]


def remove(plane: ControlPlane, folder: Path, path: str) -> None:
    """What is left of the install would be in the way of other tests: the definitions, roles, and the pods that nobody runs."""
    rendered = "helm template headroom chart --namespace headroom-system --values values.yaml"
    ends = {"KUBECONFIG": str(plane.kubeconfig()), "PATH": path}
    typed([f"{rendered} | kubectl delete --ignore-not-found -f -"], folder, **ends)
    plane.api.delete("v1", "Secret", "headroom-git", namespace=NAMESPACE)
    undefine(plane.api, *ALL)


def account(plane: ControlPlane) -> dict[str, str]:
    """What a kubelet puts where every client of a pod looks: the token that the API server makes for it."""
    kubeconfig = plane.service_account_kubeconfig(NAMESPACE, "headroom")
    authority = base64.b64decode(cluster_of(kubeconfig)["certificate-authority-data"]).decode()
    return {"token": token_of(kubeconfig), "ca.crt": authority, "namespace": NAMESPACE}


def test_the_first_buffer_is_full_within_three_minutes(installed: ControlPlane, image: Image, tmp_path: Path) -> None:
    plane = installed
    shop = Shop(plane)
    shop.deploy()
    path = plane.api.path("apps/v1", "Deployment", NAMESPACE, "headroom")
    template = plane.api.document("GET", path)["spec"]["template"]

    def find(kind: str, name: str) -> dict[str, Any]:
        found = plane.api.get("v1", kind, name, namespace=NAMESPACE)
        assert found is not None, f"{kind} {name} is not installed"
        return dict(found)

    (tmp_path / "pod").mkdir()
    pod = Pod(image, template, find, account(plane), tmp_path / "pod")
    host, _, port = plane.url.rpartition("//")[2].partition(":")
    mark = plane.audit_mark()
    pod.initialize()
    with (tmp_path / "daemon.log").open("wb") as log:
        where = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        daemon = pod.start(log, {**where, "HEADROOM_LISTEN": f"127.0.0.1:{free_port()}"})
        try:
            shop.wait_for_buffer("FitsExistingCapacity", within=180)
            assert daemon.poll() is None
        except BaseException:
            sys.stderr.write(f"--- the daemon's log ends with\n{(tmp_path / 'daemon.log').read_text()[-6000:]}\n")
            raise
        finally:
            daemon.terminate()
            code = daemon.wait(30)
    assert code == 0
    asked = [event for event in plane.audit_events(since=mark) if event.user == USER]
    assert any(event.is_write for event in asked)
    assert [(event.verb, event.resource) for event in asked if event.code == 403] == []
