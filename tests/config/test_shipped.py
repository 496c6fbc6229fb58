"""What config/ ships agrees with the code: CRDs, settings of the deployment, RBAC that is used."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.manifests.crds import crds, to_yaml
from reconciler.settings.load import load_settings, variable_of
from reconciler.telemetry.metrics import Metrics
from tests.programs import program

CONFIG = Path(__file__).resolve().parents[2] / "config"
DEFINITIONS = {definition["metadata"]["name"]: definition for definition in crds()}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_shipped_definition_is_what_the_command_prints(name: str) -> None:
    """Renew with HEADROOM_GOLDEN=write."""
    path = CONFIG / "crd" / f"{name}.yaml"
    text = to_yaml(DEFINITIONS[name])
    if os.environ.get("HEADROOM_GOLDEN") == "write":
        path.write_text(text)
    assert path.read_text() == text


def test_no_other_definition_is_shipped() -> None:
    assert {path.stem for path in (CONFIG / "crd").glob("*.yaml")} == set(DEFINITIONS)


def test_the_deployment_has_settings_that_exist(tmp_path: Path) -> None:
    document = yaml.safe_load((CONFIG / "deploy" / "settings.yaml").read_text())
    file = tmp_path / "headroom.yaml"
    file.write_text(document["data"]["headroom.yaml"])
    settings = load_settings(str(file), environment={})
    assert settings.cluster == "in-cluster"
    assert settings.leader_election
    assert settings.catalog.startswith("karpenter-metrics:http")
    deployment = yaml.safe_load((CONFIG / "deploy" / "deployment.yaml").read_text())
    mounts = {mount["mountPath"] for mount in deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]}
    assert settings.git.state in mounts


def deployment() -> dict[str, Any]:
    document = yaml.safe_load((CONFIG / "deploy" / "deployment.yaml").read_text())
    assert isinstance(document, dict)
    return document


def mount(container: dict[str, Any], name: str) -> dict[str, str]:
    return next(dict(each) for each in container["volumeMounts"] if each["name"] == name)


def test_the_deployment_takes_over_what_the_image_compiled(tmp_path: Path) -> None:
    """numba reads its cache only where it can write, and the image's own files cannot be written to."""
    image = (CONFIG.parent / "Dockerfile").read_text()
    folder = next(word for word in image.split() if word.startswith("NUMBA_CACHE_DIR=")).partition("=")[2]
    pod = deployment()["spec"]["template"]["spec"]
    daemon, first = pod["containers"][0], pod["initContainers"][0]
    source, target = mount(first, "compiled"), mount(daemon, "compiled")
    assert first["image"] == daemon["image"]
    assert target["mountPath"] == folder
    program, option, script = first["command"]
    assert (program, option) == ("python", "-c")  # an image without a shell can still run it
    (tmp_path / "image" / "inner").mkdir(parents=True)
    (tmp_path / "image" / "inner" / "loops.nbc").write_text("compiled")
    (tmp_path / "volume").mkdir()
    here = script.replace(folder, str(tmp_path / "image")).replace(source["mountPath"], str(tmp_path / "volume"))
    for _ in range(2):  # an init container may be run again
        subprocess.run([sys.executable, option, here], check=True)
    assert (tmp_path / "volume" / target["subPath"] / "inner" / "loops.nbc").read_text() == "compiled"


def test_the_image_has_the_programs_that_reading_a_repository_takes() -> None:
    """git itself, ssh and ssh-keygen, gpg for commits that OpenPGP keys signed, and certificates for https."""
    installed = (CONFIG.parent / "Dockerfile").read_text().partition("apt-get install")[2].partition("&&")[0].split()
    assert {"git", "openssh-client", "gpg", "ca-certificates"} <= set(installed)


def test_the_inventory_is_in_the_namespace_of_the_pod() -> None:
    (daemon,) = deployment()["spec"]["template"]["spec"]["containers"]
    (variable,) = daemon["env"]
    assert variable == {
        "name": variable_of("inventory.namespace"),
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
    }
    settings = load_settings(None, environment={variable["name"]: "platform"})
    assert settings.inventory.namespace == "platform"


def test_an_overlay_moves_everything_into_its_namespace(tmp_path: Path) -> None:
    kubectl = program("kubectl", install="kubectl")
    shutil.copytree(CONFIG, tmp_path / "config")
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text("namespace: capacity\nresources: [../config/deploy]\n")
    done = subprocess.run([kubectl, "kustomize", str(tmp_path / "overlay")], capture_output=True, text=True, check=True)
    documents = list(yaml.safe_load_all(done.stdout))
    assert "headroom-system" not in done.stdout
    assert {document["metadata"].get("namespace", "capacity") for document in documents} == {"capacity"}
    assert {document["kind"] for document in documents} >= {"Deployment", "Role", "RoleBinding", "ConfigMap"}


def test_the_component_for_webhooks_adds_a_port_of_its_own(tmp_path: Path) -> None:
    """Built into an overlay, as its first lines say; what the daemon then reads are settings that exist."""
    kubectl = program("kubectl", install="kubectl")
    shutil.copytree(CONFIG, tmp_path / "config")
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text(
        "namespace: capacity\nresources: [../config/deploy]\ncomponents: [../config/deploy/webhooks]\n"
    )
    done = subprocess.run([kubectl, "kustomize", str(tmp_path / "overlay")], capture_output=True, text=True, check=True)
    documents = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout)}
    assert "headroom-system" not in done.stdout
    service = documents["Service", "headroom-webhooks"]
    pod = documents["Deployment", "headroom"]["spec"]["template"]
    (daemon,) = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in daemon["ports"]}
    (served,) = service["spec"]["ports"]
    assert ports[served["targetPort"]] == served["port"]
    assert len(ports) > 1  # the port of metrics and probes is there still
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    environment = {each["name"]: each["value"] for each in daemon["env"] if "value" in each}
    settings = load_settings(None, environment=environment)
    assert settings.webhooks.listen.endswith(f":{served['port']}")
    mounted = mount(daemon, "webhooks")
    assert settings.webhooks.secret_file.startswith(f"{mounted['mountPath']}/")
    volume = next(each for each in pod["spec"]["volumes"] if each["name"] == "webhooks")
    comments = (CONFIG / "deploy" / "webhooks" / "kustomization.yaml").read_text()
    assert f"create secret generic {volume['secret']['secretName']} " in comments
    assert f"--from-literal={settings.webhooks.secret_file.rpartition('/')[2]}=" in comments
    assert {each["name"] for each in daemon["env"]} >= {variable_of("inventory.namespace")}  # the patch takes none away


def test_an_alert_fires_when_no_daemon_is_left_to_be_scraped() -> None:
    """Every other rule is silent without series; this one must be about a metric that each replica always has."""
    document = yaml.safe_load((CONFIG / "alerts" / "headroom.rules.yaml").read_text())
    (rule,) = (rule for group in document["groups"] for rule in group["rules"] if rule["expr"].startswith("absent("))
    metrics = Metrics()
    assert rule["expr"] == "absent(headroom_leader)"
    assert "headroom_leader" in {family.name for family in metrics.registry.collect()}
    assert rule["labels"] == {"severity": "critical"}
