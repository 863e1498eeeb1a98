"""The run behind the cases: judges one by one what was measured at once, and closes the run."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfsuite.errors import BaselineError, PerfsuiteError
from perfsuite.experiments.measuring import Measuring
from perfsuite.experiments.progress import Terminal
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.registry import load, open_experiments, prepared
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples
from perfsuite.experiments.stored import StoredBaselines, open_baselines
from perfsuite.records.case import Case, Expectation, group_of_own, has_no_answer
from perfsuite.records.fingerprint import Fingerprint
from perfsuite.records.outcome import CaseSamples, Judgement, Outcome, Statement, is_nothing_judged
from perfsuite.verdict.allowance import Allowance, StepShare, step_share
from perfsuite.verdict.compare import BaselineMatch, judge

if TYPE_CHECKING:
    from perfsuite.experiments.forecasts import Forecasts
    from perfsuite.experiments.own.experiment import OwnCalls


@dataclass
class PerfSession:
    """State of one pytest run with ``--device``."""

    config: RunConfig
    experiments: tuple[Experiment, ...]
    #: The cases that they have enumerated, by id.
    enumerated: dict[str, Case]
    measured: Measuring
    stored: StoredBaselines
    forecasts: Forecasts
    judgements: dict[str, Judgement] = field(default_factory=dict)
    #: Whether somebody broke the run off.
    is_interrupted: bool = False
    #: What is said of the reference that the run has left for the next one.
    first_notes: tuple[str, ...] = ()
    started_at: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat(timespec="milliseconds"))
    #: What tests have counted.
    own_calls: OwnCalls | None = None
    #: What tests have asked of the experiments beside their cases.
    statements: dict[str, Statement] = field(default_factory=dict)

    @property
    def cases(self) -> Mapping[str, Case]:
        """The cases that were enumerated, and those that were found when they were measured, by id."""
        return ChainMap(*(group.found for group in self.groups.values()), self.enumerated)

    @cached_property
    def _by_kind(self) -> dict[str, Experiment]:
        return {kind: experiment for experiment in reversed(self.experiments) for kind in experiment.kinds}

    def experiment(self, kind: str) -> Experiment | None:
        """Return the experiment that has a kind of cases; None where the run has none."""
        return self._by_kind.get(kind)

    @cached_property
    def own(self) -> Any:
        """What measures for your own tests, loaded when one asks for it."""
        return load("own")

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
        """Check a statement of an experiment; undecided, with the reason, where that could not be measured."""
        experiment = next(each for each in self.experiments if name in each.statements())
        self.statements[name] = experiment.statement(name, self._reason(experiment.name) or "")
        return self.statements[name]

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
        remarks = (each.remark(case, judgement.outcome) for each in self.experiments)
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

    def judge_call(self, *call: Any, **limits: Any) -> Judgement:
        """Count a call for a test, and judge it by what was committed, as `OwnCalls.judge` says."""
        self.own_calls = self.own_calls or self.own.OwnCalls(config=self.config)
        judgement: Judgement = self.own_calls.judge(*call, **limits)
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
                kind = case_id.partition("/")[0]
                self.judgements[case_id] = self._judged(samples, kind, Expectation(), BaselineMatch())
            for case_id in group.found:
                self.judgement(case_id)
        if is_interrupted:
            self._judge_measured()
        if self.config.baseline_mode == "record":
            own = () if self.own_calls is None else (self.own_calls,)
            kept = [each.keep() for each in (*own, *self.experiments)]
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
        is_told = any(statement.holds is not None for statement in self.statements.values())
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
            self._keep_engines()
        except PerfsuiteError as error:
            self.first_notes = (f"the baseline is kept without what made it: {error}",)
        try:
            self.config.board.close()
        except PerfsuiteError as error:
            self.errors["device"] = str(error)
        self.measured.held = self.config.board.held()

    def _keep_engines(self) -> None:
        """Keep what made the samples of this run as long as the board is there: the run may become a reference.

        Raises PerfsuiteError: the store is full, or cannot be written; the times may be stored all the same.
        """
        if self.config.baseline_mode == "off" or self.config.is_against:
            return
        for each in self.experiments:
            if each.name in self.groups and (engine_id := each.keep_engine(self.groups[each.name])) is not None:
                self.stored.kept_engines[each.name] = engine_id

    def close(self) -> None:
        """End what still runs."""
        for experiment in self.experiments:
            experiment.close()

    def subjects(self) -> dict[str, str]:
        """Return, by group, what was measured in words."""
        return {name: group.description for name, group in self.groups.items() if group.description}

    def kinds(self) -> set[str]:
        """Return the kinds of all cases, those that somebody else measured included."""
        own = {judgement.kind for judgement in self.judgements.values()}
        return own.union(case.kind for case in self.cases.values())

    def baseline_notes(self) -> tuple[str, ...]:
        """Say what the stored baselines and the device show and no verdict does, and what is no baseline here."""
        noted = tuple(note for each in self.experiments for note in each.notes())
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
        experiment = self._by_kind[case.kind]
        if not experiment.has_reference:
            return experiment.is_measured(case.case_id, has_ended=experiment.name in self.measured.ended)
        group = self.groups.get(experiment.name)
        found = None if group is None else group.judgements.get(case.case_id) or group.samples.get(case.case_id)
        return found is not None and bool(found.samples_ns)

    def _judge(self, case: Case, marker_margin: float | None) -> Judgement:
        experiment = self._by_kind[case.kind]
        name, reason = experiment.name, self._reason(experiment.name)
        if not experiment.has_reference:
            return experiment.judge(case.case_id, reason or "it was not measured")
        group = self.groups.get(name)
        if group is None:
            samples = CaseSamples(case_id=case.case_id, samples_ns=(), problems=(reason or "it was not measured",))
        elif case.case_id in group.judgements:
            return group.judgements[case.case_id]
        else:
            samples = group.samples[case.case_id]
            differing = () if self.config.allows_other_output else self.stored.other_outputs(name, self.groups)
            samples = replace(samples, problems=(*differing, *samples.problems, *self.measured.held.problems))
        expectation, baseline = (
            self._expectation(case, experiment, group),
            self.stored.match(case.case_id, name, self.groups),
        )
        return self._judged(samples, case.kind, expectation, baseline, marker_margin)

    def _judged(
        self,
        samples: CaseSamples,
        kind: str,
        expectation: Expectation,
        baseline: BaselineMatch,
        marker_margin: float | None = None,
    ) -> Judgement:
        experiment, asked = self.experiment(kind), self.config.session_spread_ratio
        allowed = Allowance(
            margin_ratio=self.config.margins.margin_ratio(kind, marker_margin),
            session_spread_ratio=experiment.session_spread_ratio(samples.case_id, asked) if experiment else asked,
            most_resolution_ratio=self.config.most_resolution_ratio,
            share=self._share(samples.case_id),
        )
        return judge(samples, kind=kind, expectation=expectation, baseline=baseline, allowed=allowed)

    def _share(self, case_id: str) -> StepShare | None:
        """Return the share of its step that a case may change by."""
        case = self.cases.get(case_id)
        experiment = None if case is None else self._by_kind[case.kind]
        if case is None or experiment is None or experiment.name not in self.groups:
            return None
        steps_ns = experiment.steps_ns(self.groups[experiment.name])
        return step_share(case, steps_ns=steps_ns, share_ratio=self.config.step_share_ratio)

    def _expectation(self, case: Case, experiment: Experiment, group: GroupSamples | None) -> Expectation:
        if group is not None and (not group.on_processor or (case.phase, case.role) in group.without_forecast):
            return Expectation()
        return experiment.expectation(case) or self.forecasts.expectation(case)

    def _reason(self, name: str) -> str | None:
        """Return why an experiment was not measured."""
        return self.errors.get(name) or self.measured.absences.get(name)

    def _own_judgements(self) -> dict[str, list[Judgement]]:
        """Return the judgements by group, those of cases that nobody enumerated under their own."""
        found: dict[str, list[Judgement]] = {name: [] for name in self.groups}
        for judgement in self.judgements.values():
            case = self.cases.get(judgement.case_id)
            group = self._by_kind[case.kind].name if case else group_of_own(judgement.kind)
            found.setdefault(group, []).append(judgement)
        return found


def open_session(config: RunConfig, *, asks_board: bool = True, is_measured: bool = True) -> PerfSession:
    """Enumerate the cases and read the baselines; nothing is measured yet, and the board need not be asked.

    Raises PerfsuiteError: a baseline file or the calibration cannot be read, or the folder of the run cannot be
    written.
    """
    stored = open_baselines(config)
    if asks_board:
        config = prepared(config, stored, is_measured=is_measured)
    forecasts, experiments = open_experiments(config, stored, asks_board=asks_board)
    return PerfSession(
        config=config,
        experiments=experiments,
        enumerated={case.case_id: case for each in experiments for case in each.cases()},
        measured=Measuring(config=config, experiments=experiments, forecasts=forecasts, stored=stored),
        stored=stored,
        forecasts=forecasts,
    )
