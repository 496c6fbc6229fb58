"""How far a pass has come, and how its stages are run: one after the other, until one of them fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.errors import Failure
from reconciler.stages.state import PassState, Stage


@dataclass(frozen=True, slots=True)
class PassProgress:
    """timings: seconds by phase. failure: what ended the pass; `state` is then what the last successful stage left.

    fault: the same, where a stage raised what no stage should raise: a defect of headroom. passed: how many stages succeeded.
    """

    state: PassState
    timings: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    fault: Exception | None = None
    passed: int = 0

    def after(self, stages: Sequence[Stage], tell: Callable[[str], None]) -> PassProgress:
        """The progress after these stages. A pass that has failed runs no more of them. tell: called with the phase of each stage."""
        state, timings, failure, fault = self.state, dict(self.timings), self.failure, self.fault
        passed = self.passed
        for stage in stages:
            if failure is not None or fault is not None:
                break
            tell(stage.phase)
            began = time.perf_counter()
            try:
                state = stage.run(state)
            except Failure as error:
                failure = error
            except Exception as error:  # noqa: BLE001 - whoever runs the stages finds the object that it is about, or raises it
                fault = error
            timings[stage.phase] = timings.get(stage.phase, 0.0) + time.perf_counter() - began
            passed += failure is None and fault is None
        return PassProgress(state, timings, failure, fault, passed)
