"""The run behind the cases: measures each group of selected cases once, then judges them one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite import __version__
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.errors import OpenClError, PerfsuiteError
from perfsuite.expectation.cases import (
    GRAPH_PHASES,
    Case,
    engine_kernel_cases,
    kernel_cases,
    operator_cases,
    phase_cases,
)
from perfsuite.expectation.forecast import Expectation
from perfsuite.expectation.roofline.roofline_run import RooflineRun
from perfsuite.plugin.examination import Examination
from perfsuite.plugin.fidelity_group import FidelityExamination
from perfsuite.plugin.forecasts import Forecasts, open_forecasts
from perfsuite.plugin.kernel_group import measure_kernels
from perfsuite.plugin.llama_group import measure_llama
from perfsuite.plugin.options import RunConfig
from perfsuite.plugin.overhead_group import OverheadExamination
from perfsuite.plugin.paired_group import measure_pairs
from perfsuite.plugin.progress import ProgressLine
from perfsuite.plugin.replicates import GroupSamples
from perfsuite.plugin.roofline_group import (
    Sweeps,
    measure_roofline,
    n_steps,
    open_sweeps,
    roofline_expectation,
    unmeasured_statement,
)
from perfsuite.plugin.shapes.hunts import ShapeHunts
from perfsuite.plugin.shapes.judges import ShapeJudges
from perfsuite.plugin.shapes.kept_group import open_kept
from perfsuite.plugin.stored import StoredBaselines, open_baselines
from perfsuite.plugin.trace_group import TraceExamination
from perfsuite.records.attribution import Attribution
from perfsuite.records.events import Phase
from perfsuite.records.judgement import Judgement
from perfsuite.records.samples import CaseSamples
from perfsuite.report.run_file import RunFile, write_run
from perfsuite.trace.samples import EMBEDDING_ROLE
from perfsuite.verdict.attribution import attribute
from perfsuite.verdict.baseline import GROUP_OF_KIND, OWN_GROUP
from perfsuite.verdict.compare import BaselineMatch, judge
from perfsuite.verdict.roofline.checks import all_checks
from perfsuite.verdict.roofline.statement import Statement
from perfsuite.verdict.roofline.stored_run import write_roofline

if TYPE_CHECKING:
    from perfsuite.trace.opencl.kernel_mapping import KernelMapping

#: The kind of the sweeps' cases, and the name of their group.
_ROOFLINE = "roofline"


@dataclass
class PerfSession:
    """State of one pytest run with ``--device``."""

    config: RunConfig
    cases: Mapping[str, Case]
    stored: StoredBaselines
    forecasts: Forecasts
    sweeps: Sweeps = field(default_factory=Sweeps)
    #: Which kernel computes which operator, on the OpenCL backend.
    mapping: KernelMapping | None = None
    #: What the sweeps have measured.
    roofline: RooflineRun | None = None
    #: What options ask to be examined beside the groups.
    examinations: tuple[Examination, ...] = ()
    #: The hunts for shapes, which are among the examinations; None without any.
    hunts: ShapeHunts | None = None
    _statements: dict[str, Statement] = field(default_factory=dict)
    groups: dict[str, GroupSamples] = field(default_factory=dict)
    #: Why a group could not be measured, by group.
    errors: dict[str, str] = field(default_factory=dict)
    #: The same, where it is no fault of the user: the device lacks something.
    absences: dict[str, str] = field(default_factory=dict)
    durations_s: dict[str, float] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)
    #: What pairs said, by case id, whether a test has asked for it or not.
    paired: dict[str, Judgement] = field(default_factory=dict)
    started_at: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat(timespec="milliseconds"))

    def measure(self, marker_margins: Mapping[str, float | None], reporter: pytest.TerminalReporter | None) -> None:
        """Measure the groups of the selected cases, given by id with the margin that their test's marker sets.

        Statements about sweeps are among them, by their names.
        """
        selected = [self.cases[case_id] for case_id in marker_margins if case_id in self.cases]
        self.sweeps = self.sweeps.only(tuple(marker_margins))
        if not selected and not self.sweeps.points:
            return
        if self.config.old is not None:
            self._measure_pairs(selected, marker_margins, reporter)
        else:
            self._measure_groups(selected, reporter)

    def _measure_pairs(
        self,
        selected: Sequence[Case],
        marker_margins: Mapping[str, float | None],
        reporter: pytest.TerminalReporter | None,
    ) -> None:
        margins = {
            case.case_id: self.config.margins.margin_ratio(case.kind, marker_margins[case.case_id]) for case in selected
        }
        progress = ProgressLine(reporter, 0)

        def measure() -> GroupSamples:
            paired = measure_pairs(self.config, selected, margins, progress)
            self.paired.update(paired.judgements)
            return paired.group

        self._group("llama", measure)
        progress.finish()

    def _measure_groups(self, selected: Sequence[Case], reporter: pytest.TerminalReporter | None) -> None:
        """Measure against forecasts and stored baselines, ceilings before and after."""
        wanted = {GROUP_OF_KIND[case.kind] for case in selected}
        n_replicates = len(wanted & {"llama", "kernels"}) * self.config.n_replicates
        examined = [(each, [case.case_id for case in selected if case.kind == each.kind]) for each in self.examinations]
        n_examined = sum(each.n_steps(case_ids) for each, case_ids in examined)
        n_sweeps = n_steps(self.config, self.sweeps) if self.sweeps.points else 0
        progress = ProgressLine(reporter, n_replicates + n_sweeps + n_examined + 2)
        self._probe(progress)
        if "llama" in wanted:
            cases = [case for case in self.cases.values() if GROUP_OF_KIND[case.kind] == "llama"]
            self._group("llama", lambda: self._measure_engine(cases, progress))
        if "kernels" in wanted:
            kernels = [case for case in selected if case.kind == "kernel"]
            self._group("kernels", lambda: measure_kernels(self.config, kernels, progress))
        if self.sweeps.points:
            self._group(_ROOFLINE, lambda: self._measure_sweeps(progress))
        for examination, case_ids in examined:
            if case_ids:
                self._examine(examination, case_ids, progress)
        self._probe(progress)
        progress.finish()

    def _measure_engine(self, cases: Sequence[Case], progress: ProgressLine) -> GroupSamples:
        if self.mapping is None:
            return measure_llama(self.config, cases, progress)
        from perfsuite.plugin.opencl_group import measure_opencl  # as in `_open_mapping`

        return measure_opencl(self.config, cases, self.mapping, progress)

    def _measure_sweeps(self, progress: ProgressLine) -> GroupSamples:
        """Measure the sweeps, and keep what they have measured beside the run's file."""
        group, self.roofline = measure_roofline(self.config, self.sweeps, progress)
        write_roofline(self.roofline, self.config.run_dir / "roofline.json")
        return group

    def _examine(self, examination: Examination, case_ids: Sequence[str], progress: ProgressLine) -> None:
        """Let an examination measure its cases; it is no group, for it has no baselines."""
        started_s = time.monotonic()
        try:
            examination.measure(case_ids, progress)
        except PerfsuiteError as error:
            self.errors[examination.kind] = str(error)
        self.durations_s[examination.kind] = round(time.monotonic() - started_s, 3)

    def statement(self, name: str) -> Statement:
        """Check a statement about the sweeps; undecided, with the reason, where they could not be measured."""
        if self.roofline is None:
            reason = self.errors.get(_ROOFLINE, "the sweeps were not measured")
            return Statement(name=name, claim="the sweeps are measured", holds=None, evidence=reason)
        if not self._statements:
            self._statements = {check.name: check for check in all_checks(self.roofline)}
        return self._statements.get(name) or unmeasured_statement(self.roofline, name)

    @property
    def has_results(self) -> bool:
        """Whether anything was measured or judged."""
        return bool(self.durations_s or self.judgements)

    def judgement(self, case_id: str, *, marker_margin: float | None = None) -> Judgement:
        """Judge one case, once."""
        if case_id not in self.judgements:
            self.judgements[case_id] = self._judge(self.cases[case_id], marker_margin)
        return self.judgements[case_id]

    def judge_foreign(
        self, samples: CaseSamples, kind: str, expectation: Expectation, *, marker_margin: float | None = None
    ) -> Judgement:
        """Judge a case that somebody else measured in their own test."""
        if OWN_GROUP not in self.groups:
            self.groups[OWN_GROUP] = GroupSamples(samples={}, fingerprint=host_fingerprint())
        baseline = self.stored.match(samples.case_id, OWN_GROUP, self.groups)
        judgement = self._judged(samples, kind, expectation, baseline, marker_margin)
        self.judgements[samples.case_id] = judgement
        return judgement

    def finish(self) -> Path:
        """Judge what no case claims, record baselines where asked to, and write the run's file; return its path."""
        for group in self.groups.values():
            for case_id, reason in group.unclaimed.items():
                samples = CaseSamples(case_id=case_id, samples_ns=(), problems=(reason,))
                self.judgements[case_id] = self._judged(samples, "operator", Expectation(), BaselineMatch())
        if self.config.baseline_mode == "record":
            self.stored.record(self.groups, self._own_judgements(), recorded_at=self.started_at)
            if self.hunts is not None:
                self.hunts.keep()
        return write_run(self.run_file(), self.config.run_dir)

    def close(self) -> None:
        """End what still runs."""
        if self.hunts is not None:
            self.hunts.judges.close()

    def kinds(self) -> set[str]:
        """Return the kinds of all cases, those that somebody else measured included."""
        own = {judgement.kind for judgement in self.judgements.values()}
        return own.union(case.kind for case in self.cases.values())

    def attribution(self) -> Attribution:
        """Say where the time of the phases went, and whether everything moved alike."""
        return attribute(self.judgements.values(), margin_ratio=self.config.margins.margin_ratio("phase"))

    def baseline_notes(self) -> tuple[str, ...]:
        """Say what the stored baselines show and no verdict does, and what of this run belongs there."""
        hunted = () if self.hunts is None else self.hunts.notes()
        return (*self.stored.notes(self.groups, self._own_judgements()), *hunted)

    def run_file(self) -> RunFile:
        """Gather what the run's file holds."""
        return RunFile(
            suite_version=__version__,
            started_at=self.started_at,
            device=self.config.profile.name,
            workload=self.config.workload.prefix,
            subjects={name: group.description for name, group in self.groups.items() if group.description},
            fingerprints={name: dict(group.fingerprint) for name, group in self.groups.items()},
            ceilings=self.forecasts.ceilings,
            durations_s=self.durations_s,
            operator_share_ratio={
                phase: share for group in self.groups.values() for phase, share in group.operator_share_ratio.items()
            },
            n_discarded_replicates={name: group.n_discarded for name, group in self.groups.items()},
            sentinels_ns={name: group.sentinels_ns for name, group in self.groups.items()},
            covariates={name: group.covariates for name, group in self.groups.items()},
            is_injected=bool(self.config.inject_op or self.config.inject_phases),
            peak_rss_bytes=max((group.peak_rss_bytes or 0 for group in self.groups.values()), default=0) or None,
            judgements=tuple(self.judgements.values()),
            against=self.config.old_text or None,
            attribution=self.attribution(),
        )

    def _group(self, name: str, measure: Callable[[], GroupSamples]) -> None:
        started_s = time.monotonic()
        try:
            self.groups[name] = measure()
        except OpenClError as error:
            self.absences[name] = str(error)
        except PerfsuiteError as error:
            self.errors[name] = str(error)
        self.durations_s[name] = round(time.monotonic() - started_s, 3)

    def _probe(self, progress: ProgressLine) -> None:
        started_s = time.monotonic()
        progress.step("ceilings")
        self.forecasts.probe()
        self.durations_s["ceilings"] = round(self.durations_s.get("ceilings", 0.0) + time.monotonic() - started_s, 3)

    def _judge(self, case: Case, marker_margin: float | None) -> Judgement:
        if case.case_id in self.paired:
            return self.paired[case.case_id]
        for examination in self.examinations:
            if examination.kind == case.kind:
                return examination.judge(case.case_id, self.errors.get(case.kind, "it was not measured"))
        group = GROUP_OF_KIND[case.kind]
        samples = self._samples(case, group)
        expectation = self._expectation(case)
        baseline = self.stored.match(case.case_id, group, self.groups)
        return self._judged(samples, case.kind, expectation, baseline, marker_margin)

    def _judged(
        self,
        samples: CaseSamples,
        kind: str,
        expectation: Expectation,
        baseline: BaselineMatch,
        marker_margin: float | None = None,
    ) -> Judgement:
        return judge(
            samples,
            kind=kind,
            expectation=expectation,
            baseline=baseline,
            margin_ratio=self.config.margins.margin_ratio(kind, marker_margin),
            session_spread_ratio=self.config.session_spread_ratio,
        )

    def _expectation(self, case: Case) -> Expectation:
        group = self.groups.get(GROUP_OF_KIND[case.kind])
        if group is not None and not group.on_processor:
            return Expectation()
        if case.kind != _ROOFLINE:
            return self.forecasts.expectation(case)
        return Expectation() if self.roofline is None else roofline_expectation(self.roofline, case.case_id)

    def _samples(self, case: Case, group: str) -> CaseSamples:
        reason = self.errors.get(group) or self.absences.get(group)
        if reason:
            return CaseSamples(case_id=case.case_id, samples_ns=(), problems=(reason,))
        return self.groups[group].samples[case.case_id]

    def _own_judgements(self) -> dict[str, list[Judgement]]:
        """Return the judgements by group, those of cases that nobody enumerated under their own."""
        found: dict[str, list[Judgement]] = {name: [] for name in self.groups}
        for judgement in self.judgements.values():
            case = self.cases.get(judgement.case_id)
            found.setdefault(GROUP_OF_KIND[case.kind] if case else OWN_GROUP, []).append(judgement)
        return found


def open_session(config: RunConfig) -> PerfSession:
    """Enumerate the cases and read the baselines; nothing is measured yet.

    Raises
    ------
    PerfsuiteError
        A baseline file or the calibration cannot be read, or the folder of the run cannot be written.
    """
    mapping = _open_mapping(config)
    cases = list(_engine_cases(config, mapping))
    if config.old is None:  # the kernels are the suite's own, the same on both sides of a pair
        cases += kernel_cases()
    forecasts = open_forecasts(config)
    hunts = _hunts(config, forecasts)
    examinations = _examinations(config, forecasts, hunts)
    cases += (case for examination in examinations for case in examination.cases())
    sweeps = open_sweeps(config) if config.old is None else Sweeps()
    cases += sweeps.cases()
    return PerfSession(
        config=config,
        cases={case.case_id: case for case in cases},
        sweeps=sweeps,
        mapping=mapping,
        examinations=examinations,
        hunts=hunts,
        stored=open_baselines(config),
        forecasts=forecasts,
    )


def _hunts(config: RunConfig, forecasts: Forecasts) -> ShapeHunts | None:
    if config.shapes is None:
        return None
    judges = ShapeJudges(config=config, request=config.shapes, ceilings=lambda: forecasts.best_ceilings)
    return ShapeHunts(config=config, request=config.shapes, judges=judges)


def _examinations(config: RunConfig, forecasts: Forecasts, hunts: ShapeHunts | None) -> tuple[Examination, ...]:
    """Return what the options ask to be examined."""
    found: list[Examination] = []
    if config.fidelity:
        found.append(FidelityExamination(config=config))
    if config.overhead:
        found.append(OverheadExamination(config=config))
    if config.trace:
        found.append(TraceExamination(config=config, ceilings=lambda: forecasts.ceilings))
    if hunts is not None:
        found += [open_kept(config, hunts.request, hunts.judges), hunts]
    return tuple(found)


def _open_mapping(config: RunConfig) -> KernelMapping | None:
    """Return which kernel computes which operator on the OpenCL backend; pairs have no trace of what a device does."""
    if config.opencl is None or config.old is not None:
        return None
    from perfsuite.plugin.opencl_group import open_mapping  # brings NumPy, which other runs do not need here

    return open_mapping(config)


def _engine_cases(config: RunConfig, mapping: KernelMapping | None) -> Iterator[Case]:
    if config.opencl is None:
        yield from phase_cases(config.workload)
        yield from operator_cases(config.workload)
        return
    # The gather of the embeddings is done by the processor, and stays in the prefill.
    yield from (case for case in phase_cases(config.workload) if case.phase is not Phase.EMBEDDING)
    if mapping is not None:
        yield from (case for case in operator_cases(config.workload) if case.role != EMBEDDING_ROLE)
        roles = {phase: mapping.kernel_roles(phase) for phase in GRAPH_PHASES}
        yield from engine_kernel_cases(config.workload, roles)
