"""The Helm chart renders what the kustomize base and its components render, and each of its values does what it says."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import __version__
from tests.controlplane.programs import ProgramsMissingError, find_program
from tests.programs import fail_or_skip, kustomized

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "chart"
COMPONENTS = {
    "git-token": "config/deploy/git-token",
    "git-ssh": "config/deploy/git-ssh",
    "webhooks": "config/deploy/webhooks",
    "monitoring": "config/monitoring",
}
REPOSITORY = "settings.repository=https://git.example.com/platform/capacity.git"
Objects = dict[tuple[str, str, str], dict[str, Any]]


def helm(*words: str, fails: bool = False) -> str:
    """What `helm` prints; where it should fail, what it complains of."""
    try:
        command = find_program("helm")
    except ProgramsMissingError as error:
        fail_or_skip(str(error))
    done = subprocess.run([command, *words], capture_output=True, text=True, check=False)
    assert bool(done.returncode) is fails, done.stderr
    return done.stderr if fails else done.stdout


def template(*words: str, namespace: str = "headroom-system") -> Objects:
    given = ("--namespace", namespace, "--set", REPOSITORY, *(word for each in words for word in ("--set", each)))
    return by_name(helm("template", "headroom", str(CHART), *given))


def by_name(text: str) -> Objects:
    documents = [document for document in yaml.safe_load_all(text) if document]
    named = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in documents
    }
    assert len(named) == len(documents)
    return named


def overlaid(folder: Path, **overlay: Any) -> Objects:
    """What an overlay on the base renders. Its paths go through a link, since kustomize wants relative ones."""
    folder.joinpath("headroom").symlink_to(ROOT)
    folder.joinpath("overlay").mkdir()
    file = {"resources": ["../headroom/config/deploy"], **overlay}
    folder.joinpath("overlay", "kustomization.yaml").write_text(yaml.safe_dump(file))
    return by_name(kustomized(folder / "overlay", "--load-restrictor=LoadRestrictionsNone"))


def comparable(objects: Objects) -> Objects:
    """Without what one side alone has: the sum that makes new pods of new settings, the default policy of images; settings as data."""
    for (kind, _, name), each in objects.items():
        if kind == "Deployment":
            template = each["spec"]["template"]
            template["metadata"]["annotations"].pop("headroom.dev/settings", None)
            for container in (*template["spec"]["initContainers"], *template["spec"]["containers"]):
                if container.get("imagePullPolicy") == "IfNotPresent":
                    del container["imagePullPolicy"]
                for several in ("env", "ports", "volumeMounts"):
                    container.get(several, []).sort(key=lambda one: str(sorted(one.items())))
            template["spec"]["volumes"].sort(key=lambda one: str(one["name"]))
        if (kind, name) == ("ConfigMap", "headroom-settings"):
            each["data"] = {key: yaml.safe_load(text) for key, text in each["data"].items()}
    return objects


@pytest.mark.parametrize(
    "components", [(), ("git-token",), ("git-ssh", "webhooks"), ("git-token", "webhooks", "monitoring")]
)
def test_the_chart_renders_the_kustomize_base(components: tuple[str, ...], tmp_path: Path) -> None:
    chosen = [f"components={{{','.join(components)}}}"] if components else []
    rendered = template("namespace.create=true", *chosen)
    assert len(rendered) >= 11
    base = overlaid(tmp_path, components=[f"../headroom/{COMPONENTS[name]}" for name in components])
    assert comparable(rendered) == comparable(base)


def test_another_namespace_is_that_of_the_overlay_but_for_the_names_of_what_has_none(tmp_path: Path) -> None:
    rendered = comparable(template("namespace.create=true", "components={balloon}", namespace="capacity"))
    base = comparable(
        overlaid(
            tmp_path,
            namespace="capacity",
            resources=["../headroom/config/deploy", "../headroom/config/balloon"],
            transformers=["../headroom/config/own-names"],
        )
    )
    for role in ("headroom", "headroom-balloon"):
        # Helm lets no two installs own one object, so the chart names even equal ones apart.
        rendered["ClusterRole", "", role] = rendered.pop(("ClusterRole", "", f"{role}:capacity"))
        rendered["ClusterRole", "", role]["metadata"]["name"] = role
        binding = rendered["ClusterRoleBinding", "", f"{role}:capacity"]
        assert binding["roleRef"]["name"] == f"{role}:capacity"
        binding["roleRef"]["name"] = role
    assert rendered == base


def test_values_reach_their_objects() -> None:
    objects = template(
        "image.repository=registry.example.com/headroom",
        f"image.digest=sha256:{'0' * 64}",
        "replicas=1",
        "resources.limits.memory=2Gi",
        "pod.nodeSelector.pool=system",
        "settings.git.interval=30s",
        "files.prices\\.json=[]",
        "env[0].name=SSL_CERT_FILE,env[0].value=/etc/forge/ca.pem",
        "volumes[0].name=forge,volumes[0].secret.secretName=forge",
        "volumeMounts[0].name=forge,volumeMounts[0].mountPath=/etc/forge",
        "networkPolicy.egress=null",
        "leaveOut={PodDisruptionBudget}",
    )
    assert not {"Namespace", "PodDisruptionBudget"} & {kind for kind, _, _ in objects}
    spec = objects["Deployment", "headroom-system", "headroom"]["spec"]
    pod = spec["template"]["spec"]
    assert spec["replicas"] == 1
    assert {each["image"] for each in (*pod["initContainers"], *pod["containers"])} == {
        f"registry.example.com/headroom@sha256:{'0' * 64}"
    }
    assert pod["containers"][0]["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi"},
        "limits": {"memory": "2Gi"},
    }
    assert pod["nodeSelector"] == {"pool": "system"}
    assert [each["name"] for each in pod["containers"][0]["env"]] == ["HEADROOM_INVENTORY_NAMESPACE", "SSL_CERT_FILE"]
    assert pod["volumes"][-1] == {"name": "forge", "secret": {"secretName": "forge"}}
    assert pod["containers"][0]["volumeMounts"][-1] == {"name": "forge", "mountPath": "/etc/forge"}
    data = objects["ConfigMap", "headroom-system", "headroom-settings"]["data"]
    assert data["prices.json"] == "[]"
    assert yaml.safe_load(data["headroom.yaml"])["git"] == {"state": "/var/lib/headroom", "interval": "30s"}


def test_new_settings_make_new_pods() -> None:
    def mark(*words: str) -> str:
        deployment = template(*words)["Deployment", "headroom-system", "headroom"]
        return str(deployment["spec"]["template"]["metadata"]["annotations"]["headroom.dev/settings"])

    assert mark() == mark("replicas=3")
    assert mark() != mark("settings.drift=report")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (["settings.path=clusters/production"], "settings.repository is needed"),
        ([REPOSITORY, "replica=3"], "replica"),
        ([REPOSITORY, "components={webhook}"], "components"),
    ],
)
def test_wrong_values_are_refused(values: list[str], complaint: str) -> None:
    words = (word for each in values for word in ("--set", each))
    assert complaint in helm("template", "headroom", str(CHART), *words, fails=True)


def test_the_chart_is_of_this_release_and_helm_finds_nothing_to_complain_of() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    (image,) = yaml.safe_load((ROOT / "config" / "deploy" / "kustomization.yaml").read_text())["images"]
    assert image == {"name": "headroom", "newTag": __version__}
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), "--set", REPOSITORY)
