"""A real Kubernetes control plane with Karpenter and KWOK, for tests and by hand.

Tests come here through `tests.controlplane.fixtures`; people through
`python -m tests.controlplane`. Everything is an ordinary process on loopback.
"""

from tests.controlplane.actors import KarpenterOptions
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.programs import ProgramsMissingError
from tests.controlplane.waiting import eventually

__all__ = ["ControlPlane", "KarpenterOptions", "ProgramsMissingError", "eventually"]
