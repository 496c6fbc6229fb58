"""One pass: the ordered stages from a Git commit to an applied plan, and how they are run.

Every stage takes what the pass knows so far, and returns it with its own result added. A stage that cannot do its work raises a typed
failure. The pass ends with that failure as its result, and what is in force stays in force.

Stages run one after the other until one fails, and again without an object that headroom itself fails on.

A stage may raise what no stage should raise, for one object among thousands. Nothing of a pass would be done then. So the stages run again
without an object that the failed function had in hand. A function over arrays has none in hand, and a sort has two. Then all objects are
left out, and put back in ever smaller parts as long as the stages succeed. What has changed since a pass succeeded is suspected first. All of
this is about the view and the tree that the pass has read.

What is set aside counts as broken or unread: nothing is deleted or released because of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import datetime, timedelta
from traceback import format_exception, walk_tb
from typing import Any

from reconciler.manifests.repository.declared import every_object
from reconciler.model import codes
from reconciler.model.changes import Outcome, Plan, WriteResult
from reconciler.model.declared import Declared, SourceTree
from reconciler.model.errors import Failure, message_of
from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef, SourcePosition, by_key
from reconciler.model.schedules import Edge, Schedule
from reconciler.model.view import ClusterView, identity_of
from reconciler.outlook import Outlook
from reconciler.placement.cache import Cache
from reconciler.plan.facts import Facts
from reconciler.ports import Catalog, Clock, Cluster, Proposals, Source
from reconciler.render.templates import TemplateSource
from reconciler.stages.consolidation import Consolidate, Vacate
from reconciler.stages.demand import FindDemand, Prepare
from reconciler.stages.placement import Place
from reconciler.stages.planning import ApplyWrites, MakePlan, ProposeWrites, Render, UpcomingEdges
from reconciler.stages.reading import FindInForce, ReadCluster, ReadManifests, ReadSource
from reconciler.stages.state import Input, InputOrigin, PassResult, PassState, Rules, Stage, result_of
from reconciler.stages.surge import MakeFirm, Rehearse


class Cycle:
    """Makes passes over one repository and one cluster. Between passes it keeps the last good version, and what saves work."""

    def __init__(
        self,
        *,
        source: Source,
        cluster: Cluster,
        catalog: Catalog,
        clock: Clock,
        rules: Rules,
        packaged_templates: Mapping[str, str],
        progress: Callable[[str], None] = lambda _phase: None,
        proposals: Proposals | None = None,
    ) -> None:
        cache = Cache()
        templates = TemplateSource(packaged_templates, rules.templates_folder)
        self._clock = clock
        self._progress = progress
        self._source, self._cluster = ReadSource(source), ReadCluster(cluster)
        self._manifests = ReadManifests(cluster, allow_empty=rules.allow_empty)
        self._reading: tuple[Stage, ...] = (
            self._manifests,
            FindInForce(catalog, rules.allow_empty, rules.inventory),
            Prepare(rules.placement, cache),
        )
        self._planning: tuple[Stage, ...] = (
            FindDemand(rules.dialect, rules.requests, rules.buffers),
            Place(rules, cache),
            MakeFirm(rules),
            Vacate(rules, cache),
            Consolidate(rules, cache),
            Rehearse(rules),
            MakePlan(rules, catalog, templates),
        )
        self._render: Stage = Render(templates)
        self._apply: Stage = (
            ApplyWrites(cluster, rules.inventory, progress)
            if proposals is None
            else ProposeWrites(proposals, templates)
        )
        self._set_aside = SetAside(progress)
        self._suspended = rules.suspend
        self._edges = UpcomingEdges()
        self._refusals: dict[ObjectRef, str] = {}

    def plan(
        self, *, include_pending: bool = False, tree: SourceTree | None = None, settled: bool = False
    ) -> PassResult:
        """The stages up to the plan; nothing is written. tree: planned instead of the source's newest. settled: plan as if objects that are
        no longer declared were deleted, and nodes that others make were there.
        """
        start = self._begun(tree, include_pending=include_pending, settled=settled)
        done = self._remembered(self._set_aside.run(start, (*self._reading, *self._planning)))
        if settled and done.failure is None:
            begun = replace(start, state=replace(start.state, set_aside=done.state.set_aside))
            read = begun.after(self._reading, self._progress).state
            left = read.effective.without(done.state.deleted_for_good)
            if left != read.effective:
                again = replace(done, state=replace(read, effective=left))
                done = self._remembered(again.after(self._planning, self._progress))
        return result_of(done.state, done.timings, done.failure)

    def observe(self) -> Facts:
        """What is declared and what is there, before anything is planned. Raises what ends a pass."""
        done = self._set_aside.run(self._begun(None), self._reading)
        if done.failure is not None:
            raise done.failure
        return done.state

    def run(self, trigger: str, *, tree: SourceTree | None = None, agreed: Plan | None = None) -> PassResult:
        """A whole pass. trigger: why it is made, in one word, for its events. tree: as for `plan`. agreed: what somebody has agreed to; if
        the plan changes anything else by now, nothing is applied, and the result has no change set."""
        start = self._begun(tree, trigger=trigger)
        done = self._remembered(self._set_aside.run(start, (*self._reading, *self._planning, self._render)))
        plan = done.state.plan
        if not done.state.suspended and (agreed is None or plan is None or plan.changes_the_same(agreed)):
            done = self._remembered(done.after((self._apply,), self._progress))
            self._refusals = _refusals(() if done.state.change_set is None else done.state.change_set.results)
        return result_of(done.state, done.timings, done.failure)

    def next_edge(self, after: datetime) -> Edge | None:
        """The first instant after this one at which the declared capacity changes, by what the last pass read."""
        return self._edges.first(after, self._manifests.last)

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Every schedule in force, including the cluster's own, as the last pass read them."""
        return () if self.outlook is None else self.outlook.facts.effective.schedules

    @property
    def outlook(self) -> Outlook | None:
        """What the last pass knew about the time to come; None until a pass has got that far."""
        return self._edges.outlook

    def _begun(self, tree: SourceTree | None, **asked: Any) -> PassProgress:
        """A pass that has read the repository, unless it is made of this tree, and the cluster. asked: fields of its state."""
        made_of, refusals = tree or SourceTree(None), self._refusals
        state = PassState(self._clock.now(), suspended=self._suspended, tree=made_of, refusals=refusals, **asked)
        return PassProgress(state).after(
            (self._cluster,) if tree is not None else (self._source, self._cluster), self._progress
        )

    def _remembered(self, done: PassProgress) -> PassProgress:
        """The same, once its edges are kept. Raises its fault."""
        if done.fault is not None:
            raise done.fault
        self._edges.remember(done.state)
        return done


def _refusals(results: Iterable[WriteResult]) -> dict[ObjectRef, str]:
    """By object, what the server refuses to make or to change, also for fields of other managers, with the reason."""
    refused = (item for item in results if item.outcome in {Outcome.REFUSED, Outcome.CONFLICT})
    return {item.write.ref: item.message for item in refused}


TRIED_AGAIN_AFTER = timedelta(minutes=10)
"""An object that was set aside is judged again after this time, since the fault may have been in what surrounds it."""
MOST_TRIALS = 200
"""Trials in one pass. After that, all objects that are still suspected are set aside together."""
_MOST_IN_TURN = 20
"""Trials in which objects are suspected one by one. After that, a fault is taken for one that many objects have."""
_MOST_IN_HAND = 6
_FILE = "File"


@dataclass(frozen=True, slots=True)
class PassProgress:
    """How far a pass has come."""

    state: PassState
    """As the last stage that succeeded has left it."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds by phase."""
    failure: Failure | None = None
    """What ended the pass."""
    fault: Exception | None = None
    """The exception that ended the pass if it was a defect of headroom and not a `Failure`."""
    passed: int = 0
    """How many stages succeeded."""

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


@dataclass(slots=True)
class _Kept:
    """What the last pass was made without, since when, and what else could change that."""

    findings: Mapping[Input, Finding] = field(default_factory=dict)
    since: datetime | None = None
    tree: SourceTree | None = None
    objects: Mapping[ObjectRef, object] = field(default_factory=dict)


class SetAside:
    """Runs the stages of a pass without the objects that they fail on. It remembers those from pass to pass.

    tell: called with the phase of each stage, in trials too."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._kept = _Kept()
        self._good = (ClusterView(), Declared())
        """The view and the documents of the last pass that succeeded."""
        self._trials = 0

    def run(self, start: PassProgress, stages: Sequence[Stage]) -> PassProgress:
        """The progress after these stages. Raises the fault if no object is to blame. start: after tree and view were read."""
        if start.fault is not None:
            raise start.fault
        if start.failure is not None:
            return start
        self._trials = 0
        kept = left_out = self._still_valid(start.state)
        traces: list[str] = []
        while (done := _without(start, left_out).after(stages, self._tell)).fault is not None:
            found = self._to_blame(start, done, done.fault, stages)
            if not found:
                raise done.fault
            traces.append("".join(format_exception(done.fault)))
            left_out = {**left_out, **found}
        if left_out != kept or not left_out:
            state = start.state
            self._kept = _Kept(left_out, state.now if left_out else None, state.tree, _contents(left_out, state.view))
        if done.failure is None:
            self._good = (start.state.view, done.state.repository)
        return replace(done, state=replace(done.state, traces=tuple(traces)))

    def _still_valid(self, state: PassState) -> Mapping[Input, Finding]:
        """What the last pass did without, unless something of it has changed, or time has passed."""
        kept = self._kept
        if not kept.findings or kept.since is None or state.now >= kept.since + TRIED_AGAIN_AFTER:
            return {}
        is_same = kept.tree is not None and state.tree.files is kept.tree.files
        return kept.findings if is_same and _contents(kept.findings, state.view) == kept.objects else {}

    def _to_blame(
        self, start: PassProgress, done: PassProgress, fault: Exception, stages: Sequence[Stage]
    ) -> dict[Input, Finding]:
        """The fewest inputs without which the stages come further; none if there are none."""
        set_aside, upto = done.state.set_aside, stages[: done.passed - start.passed + 1]
        phase = upto[-1].phase
        # While documents are being read, only files are known.
        values = _files(start.state.tree) if phase == "manifests" else _values(start.state.view, done.state.repository)
        suspects = [item for item in values if item not in set_aside]
        words = f"headroom failed on it in the stage {phase}, and does without it ({message_of(fault)})"

        def findings(inputs: Sequence[Input]) -> dict[Input, Finding]:
            return {item: _finding(item, words, values[item]) for item in inputs}

        def trial(left_out: Sequence[Input]) -> Exception | None:
            self._trials += 1
            tried = _without(start, {**set_aside, **findings(left_out)})
            return replace(tried, state=replace(tried.state, on_trial=True)).after(upto, self._tell).fault

        before = _values(*self._good)
        changed = {item for item in suspects if item in self._kept.findings or before.get(item) != values[item]}
        in_hand = sorted(_in_hand(fault, suspects), key=lambda group: group[0] not in changed)
        named = {item.ref for group in in_hand for item in group}
        for group in in_hand if self._trials < _MOST_IN_TURN else ():
            again = trial(group)
            # Another object of the kind may have the same fault: it is next. What both had in hand is not proved to be to blame.
            if again is None or not any(item.ref in named for other in _in_hand(again, suspects) for item in other):
                return findings(group)
        kinds = {item.ref.kind for item in set_aside}
        of_these_kinds = [item for item in suspects if item.ref.kind in kinds]
        for among in (of_these_kinds, [item for item in suspects if item in changed], suspects):
            if among and trial(among) is None:
                return findings(self._fewest(among, lambda left_out: trial(left_out) is None))
        return {}

    def _fewest(self, left_out: Sequence[Input], succeeds: Callable[[Sequence[Input]], bool]) -> Sequence[Input]:
        """The fewest of these that have to be left out: halves, quarters and so on are put back as long as the stages still succeed."""
        part = len(left_out)
        while part > 1:
            part = (part + 1) // 2
            for put_back in [{*left_out[begin : begin + part]} for begin in range(0, len(left_out), part)]:
                rest = [item for item in left_out if item not in put_back]
                if rest and self._trials < MOST_TRIALS and succeeds(rest):
                    left_out = rest
        return left_out


def _without(start: PassProgress, left_out: Mapping[Input, Finding]) -> PassProgress:
    return replace(start, state=replace(start.state, set_aside=left_out))


def _contents(items: Iterable[Input], view: ClusterView) -> dict[ObjectRef, object]:
    """Those of the cluster, as the view has them."""
    refs = {item.ref for item in items if item.origin is InputOrigin.CLUSTER}
    return {ref: value for ref, value in view.every_object() if ref in refs} if refs else {}


def _files(tree: SourceTree) -> dict[Input, object]:
    return {Input(InputOrigin.FILE, ObjectRef("", _FILE, "", path)): tree.files[path] for path in sorted(tree.files)}


def _values(view: ClusterView, declared: Declared) -> dict[Input, object]:
    """Every object of the documents and of the cluster, as a pass has it."""
    own = {Input(InputOrigin.REPOSITORY, ref): value for ref, value in every_object(declared)}
    return own | {Input(InputOrigin.CLUSTER, ref): value for ref, value in view.every_object()}


def _in_hand(fault: Exception, suspects: Sequence[Input]) -> Iterator[tuple[Input, ...]]:
    """Inputs that the functions which failed were about, the innermost function's first. Of an object in both, the document is first
    left out alone: what the cluster has of the object may be good."""
    known = by_key((item.ref, item) for item in suspects)
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


def _finding(item: Input, words: str, value: object) -> Finding:
    hint = "this is a defect of headroom: report it with the object; nothing is deleted or released because of it"
    if item.origin is InputOrigin.FILE:
        return codes.SET_ASIDE.finding(words, SourcePosition(item.ref.name, 1), hint=hint)
    position = getattr(value, "position", None) if item.origin is InputOrigin.REPOSITORY else None
    return codes.SET_ASIDE.finding(words, position, item.ref, hint=hint)
