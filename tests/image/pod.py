"""What a kubelet does for the daemon's pod, on the image's unpacked root file system: volumes, its account's token, first the init
containers and then the daemon, each as its security context says, with the root file system read-only and the host's network."""

from __future__ import annotations

import base64
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from tests.image.build import Image

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
Find = Callable[[str, str], dict[str, Any]]
"""The object of that kind and name in the pod's namespace."""


class Pod:
    """template: the pod template of a Deployment. account: files of the service account. folder: where its volumes are made."""

    def __init__(
        self, image: Image, template: Mapping[str, Any], find: Find, account: Mapping[str, str], folder: Path
    ) -> None:
        self._image = image
        self._spec = template["spec"]
        self._find = find
        self._group = self._spec["securityContext"]["fsGroup"]
        self._folder = folder
        self._volumes = {volume["name"]: self._made(volume) for volume in self._spec["volumes"]}
        self._account = self._written("account", {name: text.encode() for name, text in account.items()}, 0o644)

    def initialize(self) -> None:
        for container in self._spec["initContainers"]:
            done = subprocess.run(self._command(container, {}), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

    def start(self, log: IO[bytes], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """The daemon. environment: what the cluster gives every pod, and what differs since the network is the host's."""
        (container,) = self._spec["containers"]
        return subprocess.Popen(self._command(container, environment), stdout=log, stderr=log)

    def _made(self, volume: Mapping[str, Any]) -> Path:
        if "configMap" in volume:
            data = self._find("ConfigMap", volume["configMap"]["name"])["data"]
            return self._written(volume["name"], {name: text.encode() for name, text in data.items()}, 0o644)
        if "secret" in volume:
            data = self._find("Secret", volume["secret"]["secretName"])["data"]
            mode = volume["secret"].get("defaultMode", 0o644)
            return self._written(volume["name"], {name: base64.b64decode(text) for name, text in data.items()}, mode)
        assert "emptyDir" in volume, volume
        folder = self._folder / str(volume["name"])
        folder.mkdir()
        folder.chmod(0o777)
        return folder

    def _written(self, name: str, files: Mapping[str, bytes], mode: int) -> Path:
        folder = self._folder / name
        folder.mkdir()
        folder.chmod(0o755)
        for file, content in files.items():
            path = folder / file
            path.write_bytes(content)
            os.chown(path, 0, self._group)
            path.chmod(mode | 0o040)
        return folder

    def _command(self, container: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
        assert container["securityContext"]["readOnlyRootFilesystem"]
        mounts = {
            mount["mountPath"]: self._volumes[mount["name"]] / mount.get("subPath", "")
            for mount in container["volumeMounts"]
        }
        given = {each["name"]: self._value(each) for each in container.get("env", [])}
        command = container.get("command", self._image.config["Entrypoint"])
        words = [*command, *container.get("args", () if "command" in container else self._image.config["Cmd"])]
        return run_in(
            self._image,
            words,
            {**mounts, TOKEN: self._account},
            {**given, **environment},
            self._spec["securityContext"]["runAsUser"],
        )

    def _value(self, variable: Mapping[str, Any]) -> str:
        if "value" in variable:
            return str(variable["value"])
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace"
        return str(self._find("ServiceAccount", self._spec["serviceAccountName"])["metadata"]["namespace"])


def run_in(
    image: Image, words: list[str], mounts: Mapping[str, Path], environment: Mapping[str, str], user: int = 65532
) -> list[str]:
    """The command that runs words inside of the image: nothing can be written but in the mounts, and nothing is seen of the host but its
    network, names of hosts, devices and processes."""
    root = image.root
    script = ["set -e", f"mount --bind {root} {root}"]
    for inside, outside in {**mounts, "/proc": Path("/proc"), "/dev": Path("/dev")}.items():
        place = root / inside.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        script.append(f"mount --rbind {shlex.quote(str(outside))} {place}")
    for name in ("hosts", "resolv.conf"):
        place = root / "etc" / name
        place.touch()
        script.append(f"mount --bind /etc/{name} {place}")
    script.append(f"mount --options remount,bind,ro {root}")
    variables = {**image.environment, **environment}
    inside_words = ["chroot", f"--userspec={user}:{user}", f"--groups={user}", str(root), *words]
    listed = [f"{name}={value}" for name, value in variables.items()]
    # env's own PATH finds chroot; the image's finds the program.
    script.append(
        shlex.join(
            [
                "exec",
                "env",
                "--ignore-environment",
                *listed,
                "/usr/bin/setpriv",
                "--no-new-privs",
                f"/usr/sbin/{inside_words[0]}",
                *inside_words[1:],
            ]
        )
    )
    return ["unshare", "--mount", "--propagation=private", "sh", "-c", "\n".join(script)]
