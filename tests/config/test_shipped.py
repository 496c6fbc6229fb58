"""What config/ ships agrees with the code: CRDs, settings of the deployment, RBAC that is used."""

import os
from pathlib import Path

import pytest
import yaml

from reconciler.manifests.crds import crds, to_yaml
from reconciler.settings import load_settings

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


def test_the_deployment_takes_over_what_the_image_compiled() -> None:
    """numba reads its cache only where it can write, and the image's own files cannot be written to."""
    image = (CONFIG.parent / "Dockerfile").read_text()
    folder = next(word for word in image.split() if word.startswith("NUMBA_CACHE_DIR=")).partition("=")[2]
    pod = yaml.safe_load((CONFIG / "deploy" / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    daemon, first = pod["containers"][0], pod["initContainers"][0]
    volume = next(mount["name"] for mount in daemon["volumeMounts"] if mount["mountPath"] == folder)
    copied_to = next(mount["mountPath"] for mount in first["volumeMounts"] if mount["name"] == volume)
    assert first["image"] == daemon["image"]
    assert first["command"][-2:] == [f"{folder}/.", copied_to]
