"""The Pod Security Standard `restricted`, written down again for tests, and balloons that were changed at random."""

from __future__ import annotations

import copy
import random
from typing import Any

from reconciler.files import packaged_texts
from reconciler.manifests.repository.reading import read_rendered
from reconciler.model.changes import ObjectChange
from reconciler.render.templates import RenderProcess, TemplateSource
from reconciler.render.writes import balloon_document

_VALUES: tuple[Any, ...] = (
    True, False, 0, 1, 65535, "", "default", "admin", "Always", "Host", "false", "disabled", [], {}, ["ALL"], ["SYS_ADMIN"], ["sh"],
    {"type": "RuntimeDefault"}, {"type": "Unconfined"}, [{"name": "a", "hostPath": {"path": "/"}}], [{"name": "a", "image": "b"}],
    {"privileged": True}, {"runAsUser": 0}, {"drop": ["ALL"], "add": ["SYS_ADMIN"]}, [{"name": "a", "emptyDir": {}}],
    {"securityContext": {"privileged": True}}, None,
)  # fmt: skip
_NAMES: dict[str, tuple[str, ...]] = {
    "pod": (
        "activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "ephemeralContainers",
        "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname", "imagePullSecrets", "initContainers", "nodeName", "os",
        "overhead", "priority", "resourceClaims", "restartPolicy", "securityContext", "serviceAccount", "serviceAccountName",
        "shareProcessNamespace", "terminationGracePeriodSeconds", "volumes", "setHostnameAsFQDN", "HostPID", "hostPID ",
    ),
    "container": (
        "args", "command", "env", "envFrom", "imagePullPolicy", "lifecycle", "livenessProbe", "restartPolicy", "securityContext", "stdin",
        "tty", "volumeDevices", "volumeMounts", "workingDir",
    ),
    "security": (
        "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem", "runAsGroup",
        "runAsNonRoot", "runAsUser", "seLinuxOptions", "seccompProfile", "windowsOptions", "sysctls", "supplementalGroups", "fsGroup",
    ),
}  # fmt: skip


def packaged_balloon(planned: ObjectChange) -> dict[str, Any]:
    """The Deployment as the packaged template writes it."""
    process = RenderProcess()
    templates = TemplateSource(packaged_texts("templates", suffix=".j2"), process=process).of({})
    try:
        return dict(balloon_document(templates, planned, read_rendered))
    finally:
        process.close()


def mutated_balloon(balloon: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A copy with one to three fields of its pod put in, changed, or (None) taken out."""
    document = copy.deepcopy(balloon)
    pod = document["spec"]["template"]["spec"]
    container = pod["containers"][0]
    for _ in range(draw.choice((1, 1, 2, 3))):
        level, found = draw.choice(
            (
                ("pod", pod),
                ("container", container),
                ("security", pod.get("securityContext")),
                ("security", container.get("securityContext")),
            )
        )
        name, value = draw.choice(_NAMES[level]), draw.choice(_VALUES)
        if not isinstance(found, dict):
            continue
        if value is None:
            found.pop(name, None)
        else:
            found[name] = copy.deepcopy(value)
    return document


def breaches(pod: dict[str, Any]) -> list[str]:
    """The rules of the standard that a pod breaks, and whether it gets a token."""
    found = [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    found += [name for name in ("initContainers", "ephemeralContainers", "volumes", "nodeName") if pod.get(name)]
    if pod.get("automountServiceAccountToken") is not False:
        found.append("token")
    if any(pod.get(name) not in (None, "", [], {}, "default") for name in ("serviceAccountName", "serviceAccount")):
        found.append("service account")
    whole = pod.get("securityContext") or {}
    return [*found, *(breach for container in pod["containers"] for breach in _of_container(container, whole))]


def _of_container(container: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    """whole: the security context of its pod."""
    found = []
    own = container.get("securityContext") or {}
    found += [
        name for name in ("command", "args", "env", "envFrom", "volumeMounts", "lifecycle") if container.get(name)
    ]
    found += [name for name in ("privileged", "seLinuxOptions", "windowsOptions") if own.get(name) or whole.get(name)]
    if own.get("allowPrivilegeEscalation") is not False:
        found.append("allowPrivilegeEscalation")
    if (own.get("capabilities") or {}) != {"drop": ["ALL"]}:
        found.append("capabilities")
    if own.get("procMount", "Default") != "Default" or whole.get("sysctls"):
        found.append("procMount or sysctls")
    for context in (whole, own):
        profile = context.get("seccompProfile") or {"type": "RuntimeDefault"}
        found += ["runAsUser"] * (context.get("runAsUser") == 0)
        found += ["runAsNonRoot"] * ("runAsNonRoot" in context and context["runAsNonRoot"] is not True)
        found += ["seccompProfile"] * (profile != {"type": "RuntimeDefault"})
    if not (whole.get("runAsNonRoot") or own.get("runAsNonRoot")):
        found.append("runAsNonRoot")
    if not (whole.get("seccompProfile") or own.get("seccompProfile")):
        found.append("seccompProfile")
    return found
