"""The run behind the cases: judges one by one what was measured at once, and closes the run."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from perfsuite.errors import BaselineError, PerfsuiteError
from perfsuite.experiments.binding.measurement import BINDING, SESSION_SPREAD_RATIO, is_beside_native, steps_ns
from perfsuite.experiments.counted.own_calls import OwnCalls
from perfsuite.experiments.engine_replicates import graph_settings
from perfsuite.experiments.enumeration import Enumeration, enumerate_run
from perfsuite.experiments.forecasts import Forecasts, open_forecasts
from perfsuite.experiments.measuring import ROOFLINE, Measuring
from perfsuite.experiments.progress import Terminal
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.replicates import GroupSamples
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.said_graphs import with_run_graphs
from perfsuite.experiments.stored import StoredBaselines, open_baselines
from perfsuite.measure.counted_call import CountedCall
from perfsuite.records.case import Case, Expectation, group_of_kind, group_of_own, has_no_answer
from perfsuite.records.events import GRAPH_PHASES, Phase
from perfsuite.records.fingerprint import Fingerprint
from perfsuite.records.outcome import Attribution, CaseSamples, Judgement, Outcome, Statement, is_nothing_judged
from perfsuite.verdict.allowance import Allowance, StepShare, step_share
from perfsuite.verdict.attribution import attribute
from perfsuite.verdict.compare import BaselineMatch, judge

if TYPE_CHECKING:
    from perfsuite.experiments.shapes.hunts import ShapeHunts


@dataclass
class PerfSession:
    """State of one pytest run with ``--device``."""

    config: RunConfig
    enumerated: Enumeration
    measured: Measuring
    stored: StoredBaselines
    forecasts: Forecasts
    own_calls: OwnCalls
    judgements: dict[str, Judgement] = field(default_factory=dict)
    #: Whether somebody broke the run off.
    is_interrupted: bool = False
    #: What is said of the reference that the run has left for the next one.
    first_notes: tuple[str, ...] = ()
    started_at: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat(timespec="milliseconds"))

    @property
    def cases(self) -> Mapping[str, Case]:
        """The cases that were enumerated, and those that were found when they were measured, by id."""
        return ChainMap(*(group.found for group in self.groups.values()), self.enumerated.cases)

    @property
    def hunts(self) -> ShapeHunts | None:
        """The hunts for shapes; None without any."""
        from perfsuite.experiments.shapes.hunts import ShapeHunts  # only tests that hunt ask for them

        return next((each for each in self.enumerated.experiments if isinstance(each, ShapeHunts)), None)

    @property
    def groups(self) -> dict[str, GroupSamples]:
        """What was measured, by group."""
        return self.measured.groups

    @property
    def errors(self) -> dict[str, str]:
        """Why a group could not be measured, by group."""
        return self.measured.errors

    def measure(self, marker_margins: Mapping[str, float | None], reporter: Terminal | None) -> None:
        """Measure what the selected cases need, given by id with the margin that their test's marker sets."""
        self.measured.measure(marker_margins, reporter)

    def statement(self, name: str) -> Statement:
        """Check a statement about the sweeps; undecided, with the reason, where they could not be measured."""
        sweeps = self.measured.sweeps
        if sweeps is not None and (found := sweeps.statement(name)) is not None:
            return found
        reason = self._reason(ROOFLINE) or "the sweeps were not measured"
        return Statement(name=name, claim="the sweeps are measured", holds=None, evidence=reason)

    @property
    def has_results(self) -> bool:
        """Whether anything was measured or judged."""
        return bool(self.measured.durations_s or self.judgements)

    def judgement(self, case_id: str, *, marker_margin: float | None = None) -> Judgement:
        """Judge one case, once."""
        if case_id not in self.judgements:
            self.judgements[case_id] = self._remarked(self._judge(self.cases[case_id], marker_margin))
        return self.judgements[case_id]

    def _remarked(self, judgement: Judgement) -> Judgement:
        """Return the judgement with what experiments add to it."""
        case = self.cases[judgement.case_id]
        remarks = (each.remark(case, judgement.outcome) for each in self.enumerated.experiments)
        return replace(judgement, reason="; ".join(filter(None, (judgement.reason, *remarks))))

    def judge_foreign(
        self,
        samples: CaseSamples,
        kind: str,
        expectation: Expectation,
        *,
        marker_margin: float | None = None,
        fingerprint: Fingerprint | None = None,
    ) -> Judgement:
        """Judge a case that somebody else measured in their own test; `fingerprint` is what counts beside the machine.

        All of a run that have one must have the same.
        """
        group = group_of_own(kind)
        own = {**self.config.board.facts().fingerprint, **(fingerprint or {})}
        known = self.groups.setdefault(group, GroupSamples(samples={}, fingerprint=own))
        other = () if known.fingerprint == own else ("another case of the run has another OpenCL device; run it alone",)
        baseline = self.stored.match(samples.case_id, group, self.groups)
        samples = replace(samples, problems=(*samples.problems, *other, *self._own_problems()))
        judgement = self._judged(samples, kind, expectation, baseline, marker_margin)
        self.judgements[samples.case_id] = judgement
        return judgement

    def judge_call(
        self, name: str, call: CountedCall, *, limit_s: float, marker_margin: float | None = None
    ) -> Judgement:
        """Count a call for a test, and judge it by what was committed.

        Raises MeasurementError: the call fails.
        """
        judgement = self.own_calls.judge(name, call, limit_s=limit_s, margin_ratio=marker_margin)
        self.judgements[judgement.case_id] = judgement
        return judgement

    def _own_problems(self) -> tuple[str, ...]:
        """Say why what a test has timed in this process is not the device's."""
        board = self.config.board
        if board.is_local:
            return board.held().problems
        return (f"was timed at the desk, not on {self.config.profile.name}; run it there, with --perf-address=local",)

    def finish(self, *, is_interrupted: bool = False) -> None:
        """Judge what nobody enumerated and what an interruption left to judge, and record baselines where asked to.

        A run that was interrupted is no reference; hunts that had come to an end by then are kept all the same.
        """
        self.is_interrupted = is_interrupted
        for group in self.groups.values():
            for case_id, reason in group.unclaimed.items():
                samples = CaseSamples(case_id=case_id, samples_ns=(), problems=(reason,))
                self.judgements[case_id] = self._judged(samples, "operator", Expectation(), BaselineMatch())
            for case_id in group.found:
                self.judgement(case_id)
        if is_interrupted:
            self._judge_measured()
        if self.config.baseline_mode == "record":
            kept = [self.own_calls.keep(), *(each.keep() for each in self.enumerated.experiments)]
            if not is_interrupted:
                self._record(may_be_empty=any(kept))
        elif self._may_be_first:
            self.first_notes = self._kept_first()

    @property
    def _may_be_first(self) -> bool:
        """Whether what has no reference yet may become this checkout's own."""
        config = self.config
        is_as_asked = config.baseline_mode == "compare" and not config.is_against
        return is_as_asked and not (self.is_interrupted or config.inject_op or config.inject_phases)

    def _kept_first(self) -> tuple[str, ...]:
        """Keep it; where that fails, the run has lost nothing."""
        try:
            kept = self.stored.keep_first(self.groups, self._own_judgements(), recorded_at=self.started_at)
            return (*self.first_notes, *kept)
        except PerfsuiteError as error:
            return (f"no reference was kept for the next run: {error}",)

    def _record(self, *, may_be_empty: bool) -> None:
        """Record baselines; that there is nothing to record is an error, unless another one says why."""
        recorded = self.stored.record(self.groups, self._own_judgements(), recorded_at=self.started_at)
        self.first_notes = (*self.first_notes, *recorded)
        if recorded or self.errors or may_be_empty:
            return
        reasons = Counter(each.reason for each in self.judgements.values() if each.outcome is Outcome.INVALID)
        why = reasons.most_common(1)[0][0] if reasons else "no case that has baselines was measured"
        raise BaselineError(f"--baseline=record: nothing was recorded: {why}")

    @property
    def is_undecided(self) -> bool:
        """Whether there are cases or statements, and nothing was found out about any."""
        told = self.measured.sweeps.told if self.measured.sweeps else ()
        is_told = any(statement.holds is not None for statement in told)
        return not is_told and is_nothing_judged(each.outcome for each in self.judgements.values())

    @property
    def has_no_answer(self) -> bool:
        """Whether end_to_end, prefill and decode were asked for, and none could be compared."""
        return has_no_answer({case_id: each.outcome for case_id, each in self.judgements.items()})

    @property
    def suspicion(self) -> str:
        """What lets somebody look at a run in which nothing fails; empty where nothing does."""
        if any(each.outcome is Outcome.SUSPECT for each in self.judgements.values()):
            return "looks slower, not proven"
        return "fewer than five pairs" if any(group.is_too_few for group in self.groups.values()) else ""

    def let_go(self) -> None:
        """Give the device back; what could not be restored is an error of the run, what was is reported."""
        try:
            self.stored.keep_engines(self.groups)
        except PerfsuiteError as error:
            self.first_notes = (f"the baseline is kept without what made it: {error}",)
        try:
            self.config.board.close()
        except PerfsuiteError as error:
            self.errors["device"] = str(error)
        self.measured.held = self.config.board.held()

    def close(self) -> None:
        """End what still runs."""
        for experiment in self.enumerated.experiments:
            experiment.close()

    def subjects(self) -> dict[str, str]:
        """Return, by group, what was measured in words."""
        return {name: group.description for name, group in self.groups.items() if group.description}

    def kinds(self) -> set[str]:
        """Return the kinds of all cases, those that somebody else measured included."""
        own = {judgement.kind for judgement in self.judgements.values()}
        return own.union(case.kind for case in self.cases.values())

    def attribution(self) -> Attribution:
        """Say where the time of the phases went, and whether everything moved alike."""
        return attribute(self.judgements.values(), margin_ratio=self.config.margins.margin_ratio("phase"))

    def baseline_notes(self) -> tuple[str, ...]:
        """Say what the stored baselines and the device show and no verdict does, and what is no baseline here."""
        noted = tuple(note for each in self.enumerated.experiments for note in each.notes())
        is_lost = self.is_interrupted and self.config.baseline_mode == "record"
        lost = ("the run was interrupted: its samples are no baseline; run again",) if is_lost else ()
        stored = self.stored.notes(self.groups, self._own_judgements())
        return (*stored, *self._judged_by(), *noted, *lost, *self.first_notes, *self.measured.notes)

    def _judged_by(self) -> tuple[str, ...]:
        """Say which groups were judged in pairs with what made their baseline, and which by its stored times."""
        own = {} if self.config.is_against else self._own_judgements()
        paired = [name for name, found in own.items() if any(each.n_pairs is not None for each in found)]
        stored = [
            name
            for name, found in own.items()
            if name not in paired and any(each.baseline_ns is not None for each in found)
        ]
        told = (("in pairs with what made the baseline", paired), ("by stored times", stored))
        by = [f"{how}: {', '.join(sorted(names))}" for how, names in told if names]
        return (f"judged {'; '.join(by)}",) if by else ()

    def _judge_measured(self) -> None:
        """Judge the selected cases that were measured and whose tests were not reached."""
        for case_id, marker_margin in self.measured.marker_margins.items():
            if case_id in self.cases and self._is_measured(self.cases[case_id]):
                self.judgement(case_id, marker_margin=marker_margin)

    def _is_measured(self, case: Case) -> bool:
        if case.case_id in self.measured.paired:
            return bool(self.measured.paired[case.case_id].samples_ns)
        experiment = self._experiment(case)
        if experiment is not None:
            return experiment.is_measured(case.case_id, has_ended=case.kind in self.measured.examined)
        group = self.groups.get(group_of_kind(case.kind))
        return group is not None and bool(group.samples[case.case_id].samples_ns)

    def _judge(self, case: Case, marker_margin: float | None) -> Judgement:
        if case.case_id in self.measured.paired:
            return self.measured.paired[case.case_id]
        experiment = self._experiment(case)
        if experiment is not None:
            return experiment.judge(case.case_id, self._reason(case.kind) or "it was not measured")
        group = group_of_kind(case.kind)
        samples = self._samples(case, group)
        expectation = self._expectation(case)
        baseline = self.stored.match(case.case_id, group, self.groups)
        return self._judged(samples, case.kind, expectation, baseline, marker_margin)

    def _experiment(self, case: Case) -> Experiment | None:
        return next((each for each in self.enumerated.experiments if each.kind == case.kind), None)

    def _judged(
        self,
        samples: CaseSamples,
        kind: str,
        expectation: Expectation,
        baseline: BaselineMatch,
        marker_margin: float | None = None,
    ) -> Judgement:
        allowed = Allowance(
            margin_ratio=self.config.margins.margin_ratio(kind, marker_margin),
            session_spread_ratio=self._session_spread_ratio(samples.case_id, kind),
            most_resolution_ratio=self.config.most_resolution_ratio,
            share=self._share(samples.case_id),
        )
        return judge(samples, kind=kind, expectation=expectation, baseline=baseline, allowed=allowed)

    def _session_spread_ratio(self, case_id: str, kind: str) -> float:
        asked = self.config.session_spread_ratio
        return min(asked, SESSION_SPREAD_RATIO) if kind == BINDING and is_beside_native(case_id) else asked

    def _share(self, case_id: str) -> StepShare | None:
        """Return the share of its step that a case may change by."""
        case = self.cases.get(case_id)
        if case is None or group_of_kind(case.kind) not in self.groups:
            return None
        if group_of_kind(case.kind) == BINDING:
            found = steps_ns(self.config, self.groups[BINDING])
        else:
            found = self._steps_ns if group_of_kind(case.kind) == group_of_kind("phase") else {}
        return step_share(case, steps_ns=found, share_ratio=self.config.step_share_ratio)

    @cached_property
    def _steps_ns(self) -> dict[Phase, float]:
        """What the phases that evaluate a graph took, as far as they were measured; asked for when that is done."""
        samples = self.groups[group_of_kind("phase")].samples
        steps = [case for case in self.cases.values() if case.kind == "phase" and case.phase in GRAPH_PHASES]
        found = [(case.phase, samples[case.case_id].samples_ns) for case in steps if case.case_id in samples]
        return {phase: median(samples_ns) for phase, samples_ns in found if phase is not None and samples_ns}

    def _expectation(self, case: Case) -> Expectation:
        group = self.groups.get(group_of_kind(case.kind))
        if group is not None and (not group.on_processor or (case.phase, case.role) in group.without_forecast):
            return Expectation()
        if case.kind != ROOFLINE:
            return self.forecasts.expectation(case)
        return Expectation() if self.measured.sweeps is None else self.measured.sweeps.expectation(case.case_id)

    def _samples(self, case: Case, group: str) -> CaseSamples:
        reason = self._reason(group)
        if reason and group not in self.groups:
            return CaseSamples(case_id=case.case_id, samples_ns=(), problems=(reason,))
        samples = self.groups[group].samples[case.case_id]
        differing = () if self.config.allows_other_output else self.stored.other_outputs(group, self.groups)
        return replace(samples, problems=(*differing, *samples.problems, *self.measured.held.problems))

    def _reason(self, name: str) -> str | None:
        """Return why a group, or an experiment, was not measured."""
        return self.errors.get(name) or self.measured.absences.get(name)

    def _own_judgements(self) -> dict[str, list[Judgement]]:
        """Return the judgements by group, those of cases that nobody enumerated under their own."""
        found: dict[str, list[Judgement]] = {name: [] for name in self.groups}
        for judgement in self.judgements.values():
            case = self.cases.get(judgement.case_id)
            group = group_of_kind(case.kind) if case else group_of_own(judgement.kind)
            found.setdefault(group, []).append(judgement)
        return found


def open_session(config: RunConfig, *, asks_board: bool = True) -> PerfSession:
    """Enumerate the cases and read the baselines; nothing is measured yet, and the board need not be asked.

    Raises PerfsuiteError: a baseline file or the calibration cannot be read, or the folder of the run cannot be
    written.
    """
    if asks_board and not config.is_planned:
        config = with_run_graphs(config)
    forecasts = open_forecasts(config, asks_board=asks_board)
    stored = open_baselines(config)
    enumerated = enumerate_run(config, forecasts, stored.case_ids("llama", graph_settings(config)))
    return PerfSession(
        config=config,
        enumerated=enumerated,
        measured=Measuring(config=config, enumerated=enumerated, forecasts=forecasts, stored=stored),
        stored=stored,
        forecasts=forecasts,
        own_calls=OwnCalls(config=config),
    )
