"""`python -m tests.controlplane`: a control plane by hand, until Ctrl-C.

Called by people (`make cluster`), and with --build-only by CI, which caches what it builds.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from tests.controlplane.actors import KarpenterOptions
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.documents import node_class, node_pool
from tests.controlplane.go_modules import CONTROL_PLANE
from tests.controlplane.process import ProcessFailedError
from tests.controlplane.programs import ProgramsMissingError, find_all, find_data

_HELP = """
A Kubernetes {version} with Karpenter (KWOK provider) runs at {url}, ready after {seconds:.1f} s.

  export KUBECONFIG={kubeconfig}

  kubectl get nodepools,nodeclaims,nodes
  kubectl create deployment web --image=any --replicas=5
  kubectl set resources deployment web --requests=cpu=1      # Karpenter makes nodes for it
  export HEADROOM_CATALOG={catalog}
  headroom plan --repo examples-repo --path clusters/production   # what headroom would do

Karpenter's metrics: {metrics}
Logs, audit log and state: {folder}

Ctrl-C stops it all.
"""


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        if options.build_only:
            for name, path in find_all().items():
                sys.stdout.write(f"{name}: {path}\n")
            return 0
        find_all(CONTROL_PLANE)
        return _run(options)
    except (ProgramsMissingError, ProcessFailedError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped\n")
        return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane", description=__doc__)
    parser.add_argument("--build-only", action="store_true", help="build and cache the programs, and stop")
    parser.add_argument(
        "--state-dir", type=Path, help="keep everything here and find it again (default: a folder that goes)"
    )
    parser.add_argument("--instance-types", type=Path, help="Karpenter's catalog (default: its built-in one)")
    parser.add_argument(
        "--feature-gate",
        action="append",
        metavar="NAME",
        help="a Karpenter feature gate to turn on, such as CapacityBuffer (default: NodeOverlay and StaticCapacity)",
    )
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> int:
    karpenter = KarpenterOptions(instance_types=options.instance_types)
    if options.feature_gate is not None:
        karpenter = KarpenterOptions(tuple(options.feature_gate), options.instance_types)
    # A plain kill ends it as orderly as Ctrl-C does; and Ctrl-C works where a shell that put us
    # in the background has turned it off.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    with ControlPlane(karpenter=karpenter, state_dir=options.state_dir) as plane:
        plane.api.apply(node_class())
        plane.api.apply(node_pool())
        sys.stdout.write(
            _HELP.format(
                version=plane.api.document("GET", "/version")["gitVersion"],
                url=plane.url,
                seconds=time.monotonic() - started,
                kubeconfig=plane.kubeconfig(),
                catalog=options.instance_types or find_data("instance_types.json"),
                metrics=plane.karpenter_metrics_url,
                folder=plane.folder,
            )
        )
        sys.stdout.flush()
        while True:
            signal.pause()


if __name__ == "__main__":
    sys.exit(main())
