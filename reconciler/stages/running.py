"""How the stages of a pass are run: one after the other until one fails, and again without an object that headroom itself fails on.

A stage may raise what no stage should raise, for one object among thousands. Nothing of a pass would be done then. So the stages run again
without the objects that the failed function had in hand. If that does not help, halves of all objects are left out in turn, until the
fewest are found without which the stages succeed. What has changed since a pass succeeded is suspected first.

What is set aside counts as broken or unread: nothing is deleted or released because of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import datetime, timedelta
from traceback import format_exception, walk_tb

from reconciler.manifests.repository.declared import every_object
from reconciler.model import codes
from reconciler.model.declared import Declared
from reconciler.model.errors import Failure
from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.source import SourceTree
from reconciler.model.view import ClusterView, identity_of
from reconciler.stages.state import Input, InputOrigin, PassState, Stage

TRIED_AGAIN_AFTER = timedelta(minutes=10)
"""An object that was set aside is judged again after this time, since the fault may have been in what surrounds it."""
MOST_TRIALS = 200
"""Trials in one pass. After that, all objects that are still suspected are set aside together."""
_MOST_IN_HAND = 6
_LONGEST_ERROR = 200
_FILE = "File"


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


Run = Callable[[PassProgress, Sequence[Stage]], PassProgress]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where the objects of a pass are found again after a fault. last: the documents as last read."""

    view: Callable[[], ClusterView]
    last: Callable[[], Declared | None]


@dataclass(slots=True)
class _Kept:
    """What the last pass was made without, since when, and what else could change that."""

    findings: Mapping[Input, Finding] = field(default_factory=dict)
    since: datetime | None = None
    tree: SourceTree | None = None
    objects: Mapping[ObjectRef, object] = field(default_factory=dict)


class SetAside:
    """Runs the stages of a pass without the objects that they fail on. It remembers those from pass to pass."""

    def __init__(self, run: Run, inputs: Inputs) -> None:
        self._run = run
        self._inputs = inputs
        self._kept = _Kept()
        self._good: tuple[ClusterView, Declared] = (ClusterView(), Declared())
        """What the last pass succeeded with, beside what it did without."""
        self._trials = 0

    def after(self, start: PassProgress, stages: Sequence[Stage]) -> PassProgress:
        """The progress after these stages. Raises the fault if no object is to blame. start: after the source was read."""
        self._trials = 0
        kept = left_out = self._still_valid(start.state)
        traces: list[str] = []
        done = self._run(_without(start, left_out), stages)
        while done.fault is not None:
            found = self._to_blame(_without(start, left_out), done, done.fault, stages)
            if not found:
                raise done.fault
            traces.append("".join(format_exception(done.fault)))
            left_out = {**left_out, **found}
            done = self._run(_without(start, left_out), stages)
        if left_out != kept or not left_out:
            state = start.state
            self._kept = _Kept(left_out, state.now if left_out else None, state.tree, self._contents(left_out))
        self._good = (self._inputs.view(), self._inputs.last() or Declared())
        return replace(done, state=replace(done.state, traces=tuple(traces)))

    def _still_valid(self, state: PassState) -> Mapping[Input, Finding]:
        """What the last pass did without, unless something of it has changed, or time has passed."""
        kept = self._kept
        if not kept.findings or kept.since is None or state.now >= kept.since + TRIED_AGAIN_AFTER:
            return {}
        is_same = kept.tree is not None and state.tree.files is kept.tree.files
        return kept.findings if is_same and self._contents(kept.findings) == kept.objects else {}

    def _contents(self, items: Mapping[Input, Finding]) -> Mapping[ObjectRef, object]:
        refs = {item.ref for item in items if item.origin is InputOrigin.CLUSTER}
        return {} if not refs else {ref: item for ref, item in self._inputs.view().objects.items() if ref in refs}

    def _to_blame(
        self, start: PassProgress, done: PassProgress, fault: Exception, stages: Sequence[Stage]
    ) -> dict[Input, Finding]:
        """The fewest inputs without which the stages come further; none if there are none."""
        state, passed = start.state, done.passed - start.passed
        failed, upto = stages[passed], stages[: passed + 1]
        places = self._places(state, is_reading=failed.phase == "manifests")
        suspects = [item for item in places if item not in state.set_aside]
        words = f"headroom failed on it in the stage {failed.phase} ({_words(fault)}), and does without it"

        def findings(inputs: Sequence[Input]) -> dict[Input, Finding]:
            return {item: _finding(item, words, places[item]) for item in inputs}

        def trial(left_out: Sequence[Input]) -> Exception | None:
            self._trials += 1
            tried = _without(start, {**state.set_aside, **findings(left_out)})
            return self._run(replace(tried, state=replace(tried.state, on_trial=True)), upto).fault

        before, now = _values(*self._good), _values(self._inputs.view(), self._inputs.last() or Declared())
        changed = {item for item in suspects if item in self._kept.findings or before.get(item) != now.get(item)}
        in_hand = sorted(_in_hand(fault, suspects), key=lambda group: group[0] not in changed)
        named = {item.ref for group in in_hand for item in group}
        for group in in_hand if self._trials < MOST_TRIALS else ():
            again = trial(group)
            # Another object of the kind may have the same fault: it is next. What both had in hand is not proved to be to blame.
            if again is None or not any(item.ref in named for other in _in_hand(again, suspects) for item in other):
                if group[0] not in changed and changed and trial([*changed]) is None:
                    break
                return findings(group)
        kinds = {item.ref.kind for item in state.set_aside}
        for among in (kinds, changed, suspects):
            left_out = [item for item in suspects if item in among or item.ref.kind in among]
            if left_out and trial(left_out) is None:
                return findings(self._fewest(left_out, [], lambda left_out: trial(left_out) is None))
        return {}

    def _fewest(
        self, suspects: Sequence[Input], already: Sequence[Input], succeeds: Callable[[Sequence[Input]], bool]
    ) -> Sequence[Input]:
        """The fewest suspects to leave out beside those that are left out already. Without all of them the stages succeed."""
        if len(suspects) <= 1 or self._trials >= MOST_TRIALS:
            return suspects
        half = len(suspects) // 2
        for part in (suspects[:half], suspects[half:]):
            if succeeds([*already, *part]):
                return self._fewest(part, already, succeeds)
        first = self._fewest(suspects[:half], [*already, *suspects[half:]], succeeds)
        return [*first, *self._fewest(suspects[half:], [*already, *first], succeeds)]

    def _places(self, state: PassState, *, is_reading: bool) -> dict[Input, SourcePosition | None]:
        """Every input of the pass, and where it is declared. Only files are known while documents are being read."""
        if is_reading:
            return {
                Input(InputOrigin.FILE, ObjectRef("", _FILE, "", path)): SourcePosition(path, 1)
                for path in sorted(state.tree.files)
            }
        values = _values(self._inputs.view(), self._inputs.last() or Declared())
        return {
            item: getattr(value, "position", None) if item.origin is InputOrigin.REPOSITORY else None
            for item, value in values.items()
        }


def _without(start: PassProgress, left_out: Mapping[Input, Finding]) -> PassProgress:
    return replace(start, state=replace(start.state, set_aside=left_out))


def _values(view: ClusterView, declared: Declared) -> dict[Input, object]:
    """Every object of the documents and of the cluster, as a pass has it."""
    own = {Input(InputOrigin.REPOSITORY, ref): value for ref, value in every_object(declared)}
    return own | {Input(InputOrigin.CLUSTER, ref): value for ref, value in view.every_object()}


def _in_hand(fault: Exception, suspects: Sequence[Input]) -> Iterator[tuple[Input, ...]]:
    """Inputs that the functions which failed were about, the innermost function's first. Of an object in both, the document is first
    left out alone: what the cluster has of the object may be good."""
    known: dict[ObjectRef, list[Input]] = {}
    for item in suspects:
        known.setdefault(item.ref, []).append(item)
    frames = [frame for frame, _ in walk_tb(fault.__traceback__)]
    values = (value for frame in reversed(frames) for value in frame.f_locals.values())
    held = [identity_of(value) for value in values if isinstance(value, ObjectRef) or is_dataclass(value)]
    # What is at fault may be a name that is no text.
    named = [ref for ref in held if ref is not None and all(isinstance(part, str) for part in ref)]
    found = [ref for ref in dict.fromkeys(named) if ref in known]
    for ref in found[:_MOST_IN_HAND]:
        inputs = tuple(known[ref])
        if len(inputs) > 1:
            yield inputs[:1]
        yield inputs


def _finding(item: Input, words: str, position: SourcePosition | None) -> Finding:
    ref = None if item.origin is InputOrigin.FILE else item.ref
    hint = "this is a defect of headroom: report it with the object; nothing is deleted or released because of it"
    return codes.SET_ASIDE.finding(words, position, ref, hint=hint)


def _words(fault: Exception) -> str:
    """`ValueError in disruption_budgets.py, line 187: …`: what to report."""
    place = ""
    for frame, line in walk_tb(fault.__traceback__):
        place = f" in {frame.f_code.co_filename.rpartition('/')[2]}, line {line}"
    text = str(fault)
    said = f"{text[:_LONGEST_ERROR]}…" if len(text) > _LONGEST_ERROR else text
    return f"{type(fault).__name__}{place}" + (f": {said}" if said else "")
