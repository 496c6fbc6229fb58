"""The Go modules that the control plane's programs and data files come from.

Pure description: what to build, with which version stamps, and which files of which module go
along. Used by `builds` (which builds it) and `programs` (which finds it).
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

MODULES_FOLDER = Path(__file__).parent / "modules"


@dataclass(frozen=True)
class Program:
    """One executable: its name and the Go package that it is built from."""

    name: str
    package: str


@dataclass(frozen=True)
class DataFiles:
    """Files of a dependency that are copied next to the programs, as `name` or into it.

    `patterns` are globs inside the dependency's source; with `folder` false there is one file.
    """

    name: str
    dependency: str
    patterns: tuple[str, ...]
    folder: bool = True


@dataclass(frozen=True)
class DataTree:
    """Folders of a dependency that are copied as they are into the folder `name` next to the programs."""

    name: str
    dependency: str
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """One of our own Go modules in `modules/`; kept apart since their dependencies clash."""

    name: str
    programs: tuple[Program, ...]
    data: tuple[DataFiles | DataTree, ...] = ()
    # The module whose version is stamped into its programs, if any needs it.
    stamped: str | None = None
    # Go's build tags. Programs with C in them (cgo) need a C compiler. Neither is in repr, by which caches are keyed:
    # `key` adds them for the modules that have any.
    tags: tuple[str, ...] = field(default=(), repr=False)
    cgo: bool = field(default=False, repr=False)

    @property
    def folder(self) -> Path:
        """Where its go.mod lies."""
        return MODULES_FOLDER / self.name

    @property
    def asset_names(self) -> tuple[str, ...]:
        """Everything that a complete build of this module leaves behind."""
        return (*(program.name for program in self.programs), *(data.name for data in self.data))

    def key(self) -> str:
        """Name of its cache folder: changes with the dependencies, the recipe and the machine."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        digest.update(repr((self, sys.platform, platform.machine())).encode())
        if self.tags or self.cgo:
            digest.update(repr((self.tags, self.cgo)).encode())
        return f"{self.name}-{digest.hexdigest()[:12]}"

    def go_version(self) -> str:
        """The least Go release that its go.mod accepts."""
        return self._in_go_mod(r"go (\S+)")

    def linker_flags(self) -> str:
        """Strips symbols; stamps the version, without which clients choke on the server's."""
        flags = "-s -w"
        if self.stamped is not None:
            version = self._in_go_mod(rf"(?:require )?\t?{re.escape(self.stamped)} (v\S+)")
            major, minor = version.removeprefix("v").split(".")[:2]
            stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
            for variable, value in stamps.items():
                flags += f" -X k8s.io/component-base/version.{variable}={value}"
        return flags

    def _in_go_mod(self, line: str) -> str:
        found = re.search(rf"^{line}$", (self.folder / "go.mod").read_text(), re.MULTILINE)
        if found is None:
            message = f"{self.folder / 'go.mod'} has no line like {line!r}"
            raise ValueError(message)
        return found.group(1)


KUBERNETES = Module(
    name="kubernetes",
    programs=(
        Program("etcd", "go.etcd.io/etcd/server/v3"),
        Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ),
    stamped="k8s.io/kubernetes",
)
KARPENTER = Module(
    name="karpenter",
    programs=(Program("karpenter", "sigs.k8s.io/karpenter/kwok"),),
    data=(
        DataFiles("karpenter-crds", "sigs.k8s.io/karpenter", ("pkg/apis/crds/*.yaml", "kwok/apis/crds/*.yaml")),
        DataFiles(
            "instance_types.json", "sigs.k8s.io/karpenter", ("kwok/cloudprovider/instance_types.json",), folder=False
        ),
    ),
)
KWOK = Module(
    name="kwok",
    programs=(Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),),
    data=(
        DataFiles(
            "kwok-stages",
            "sigs.k8s.io/kwok",
            ("kustomize/stage/node/fast/node-*.yaml", "kustomize/stage/pod/fast/pod-*.yaml"),
        ),
    ),
)
GITEA = Module(
    name="gitea",
    programs=(Program("gitea", "code.gitea.io/gitea"),),
    # Without assets in the program, which take Node.js to make, it reads them from a folder.
    data=(DataTree("gitea-static", "code.gitea.io/gitea", ("templates", "options", "public")),),
    tags=("sqlite", "sqlite_unlock_notify"),
    cgo=True,
)
KUEUE = Module(
    name="kueue",
    programs=(Program("kueue", "sigs.k8s.io/kueue/cmd/kueue"),),
    data=(
        DataFiles("kueue-crds", "sigs.k8s.io/kueue", ("config/components/crd/bases/*.yaml",)),
        DataFiles(
            "kueue-webhooks.yaml", "sigs.k8s.io/kueue", ("config/components/webhook/manifests.yaml",), folder=False
        ),
        # Kueue makes requests of this kind; where its CRD is absent it does without.
        DataFiles(
            "provisioning-request-crd.yaml",
            "k8s.io/autoscaler/cluster-autoscaler/apis",
            ("config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml",),
            folder=False,
        ),
    ),
)
HELM = Module(name="helm", programs=(Program("helm", "helm.sh/helm/v3/cmd/helm"),))
PROMETHEUS = Module(
    name="prometheus", programs=(Program("prometheus", "github.com/prometheus/prometheus/cmd/prometheus"),)
)
# What every control plane here consists of; the others join it where a test asks.
CONTROL_PLANE = (KUBERNETES, KARPENTER, KWOK)
MODULES = (*CONTROL_PLANE, KUEUE, GITEA, HELM, PROMETHEUS)
