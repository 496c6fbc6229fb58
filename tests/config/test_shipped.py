"""What config/ ships agrees with the code: CRDs, settings of the deployment, RBAC that is used."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import __version__
from reconciler.manifests.crds import crds, to_yaml
from reconciler.settings.load import load_settings, variable_of
from tests.goldens import check
from tests.programs import kustomized

CONFIG = Path(__file__).resolve().parents[2] / "config"
DEFINITIONS = {definition["metadata"]["name"]: definition for definition in crds()}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_shipped_definition_is_what_the_command_prints(name: str) -> None:
    check(CONFIG / "crd" / f"{name}.yaml", to_yaml(DEFINITIONS[name]))


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
    (daemon,) = deployment()["spec"]["template"]["spec"]["containers"]
    assert settings.git.state in {mount["mountPath"] for mount in daemon["volumeMounts"]}


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


def test_the_inventory_is_in_the_namespace_of_the_pod() -> None:
    (daemon,) = deployment()["spec"]["template"]["spec"]["containers"]
    (variable,) = daemon["env"]
    assert variable == {
        "name": variable_of("inventory.namespace"),
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
    }
    settings = load_settings(None, environment={variable["name"]: "platform"})
    assert settings.inventory.namespace == "platform"


def test_the_documented_overlay_sets_image_and_repository_and_brings_the_token(tmp_path: Path) -> None:
    page = (CONFIG.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    overlay = page.partition("### With kustomize\n")[2].partition("```yaml\n")[2].partition("```")[0]
    shutil.copytree(CONFIG, tmp_path / "headroom" / "config")
    (tmp_path / "kustomization.yaml").write_text(overlay)
    settings = (CONFIG / "deploy" / "settings.yaml").read_text(encoding="utf-8")
    (tmp_path / "settings.yaml").write_text(settings.replace("git.example.com", "git.mine.example.com"))
    of_kind = {each["kind"]: each for each in yaml.safe_load_all(kustomized(tmp_path))}
    assert "git.mine.example.com" in of_kind["ConfigMap"]["data"]["headroom.yaml"]
    daemon = of_kind["Deployment"]
    pod = daemon["spec"]["template"]["spec"]
    image = f"registry.example.com/headroom:{__version__}"
    assert [each["image"] for each in (*pod["initContainers"], *pod["containers"])] == [image, image]
    environment = {each["name"]: each["value"] for each in pod["containers"][0]["env"] if "value" in each}
    file = load_settings(None, environment=environment).git.token_file
    assert file == f"{mount(pod['containers'][0], 'git')['mountPath']}/token"


def test_two_installs_share_nothing_that_names_one_of_them(tmp_path: Path) -> None:
    """Of what has no namespace, only what both installs write alike may have one name."""
    first, second = (installed_in(tmp_path, namespace) for namespace in ("capacity", "staging"))
    shared = first.keys() & second.keys()
    assert {kind for kind, _, _ in shared} == {"ClusterRole"}
    assert all(first[key] == second[key] for key in shared)
    for documents, namespace in ((first, "capacity"), (second, "staging")):
        for name in ("headroom", "headroom-balloon"):
            (subject,) = documents["ClusterRoleBinding", "", f"{name}:{namespace}"]["subjects"]
            assert subject["namespace"] == namespace


def installed_in(folder: Path, namespace: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Every object of an overlay in that namespace, by kind, namespace and name."""
    shutil.copytree(CONFIG, folder / "config", dirs_exist_ok=True)
    (folder / namespace).mkdir()
    (folder / namespace / "kustomization.yaml").write_text(
        f"namespace: {namespace}\nresources: [../config/deploy, ../config/balloon]\ntransformers: [../config/own-names]\n"
    )
    documents = [each for each in yaml.safe_load_all(kustomized(folder / namespace)) if each["kind"] != "Namespace"]
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in documents}


def test_the_network_policy_lets_through_what_the_settings_need_and_no_cloud_credentials() -> None:
    (policy,) = yaml.safe_load_all((CONFIG / "deploy" / "network_policy.yaml").read_text())
    spec = policy["spec"]
    labels = deployment()["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"].items() <= labels.items()
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    (served,) = (port for rule in spec["ingress"] for port in rule["ports"])
    assert served["port"] == deployment()["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"]
    asked = {port["port"] for rule in spec["egress"] for port in rule["ports"]}
    assert asked == {53, 443, 6443, 22, 8080}
    (world,) = (rule for rule in spec["egress"] if any("ipBlock" in peer for peer in rule.get("to", ())))
    assert "169.254.169.254/32" in world["to"][0]["ipBlock"]["except"]


def test_every_empty_dir_has_a_limit() -> None:
    volumes = deployment()["spec"]["template"]["spec"]["volumes"]
    assert [each["name"] for each in volumes if "emptyDir" in each and not each["emptyDir"].get("sizeLimit")] == []


@pytest.mark.parametrize(
    ("release", "base", "builds"),
    [
        ("", "python:3.13-slim", True),
        ("1", "python:3.13-slim", False),
        ("1", "python:3.13-slim@sha256:abc", False),
        ("1", f"python:3.13-slim@sha256:{'0' * 64}", True),
    ],
)
def test_a_release_is_built_on_a_base_by_digest(release: str, base: str, *, builds: bool) -> None:
    text = (CONFIG.parent / "Dockerfile").read_text()
    assert re.findall("^FROM (?!scratch).*", text, re.MULTILINE) == ["FROM ${BASE} AS build"]
    (check,) = (line.removeprefix("RUN ") for line in text.splitlines() if line.startswith("RUN if "))
    done = subprocess.run(
        ["/bin/sh", "-c", check],
        env={"RELEASE": release, "BASE": base, "PATH": os.defpath},
        capture_output=True,
        check=False,
    )
    assert (done.returncode == 0) == builds


def test_the_component_for_webhooks_adds_a_port_of_its_own(tmp_path: Path) -> None:
    """Built into an overlay, as its first lines say; what the daemon then reads are settings that exist."""
    shutil.copytree(CONFIG, tmp_path / "config")
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text(
        "namespace: capacity\nresources: [../config/deploy]\ncomponents: [../config/deploy/webhooks]\n"
        "transformers: [../config/own-names]\n"
    )
    rendered = kustomized(tmp_path / "overlay")
    documents = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(rendered)}
    assert "headroom-system" not in rendered
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
