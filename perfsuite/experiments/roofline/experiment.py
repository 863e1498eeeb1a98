"""Measures the sweeps of a run once for all roofline cases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from perfsuite import __version__
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.ceiling import Survey, merge_surveys
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind, subject_of, write_roofline
from perfsuite.expectation.roofline.sweeps import BASE, SweepPoint, SweepSubject, sweep_points
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment, Selection
from perfsuite.experiments.roofline.checks import (
    BOUNDED,
    all_checks,
    bound_check,
    expected_regime,
    floor_ns,
    series_checks_of,
)
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples
from perfsuite.experiments.scenario_bench import N_PROCESSES, Bench, measure_memories, measure_rows
from perfsuite.measure.device_survey import SurveyRequest, measure_bounds, survey_device
from perfsuite.measure.engine import Engine
from perfsuite.measure.probes import thread_counts
from perfsuite.records.case import Case, Expectation
from perfsuite.records.outcome import CaseSamples, Statement

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRequest:
    """What a roofline is measured of."""

    survey: SurveyRequest
    #: Workloads whose operators are rows as well, and those of which phases alone are.
    base: tuple[SweepPoint, ...]
    sweeps: tuple[SweepPoint, ...]
    engine: Engine
    #: Of each workload.
    n_processes: int
    #: Whether independent programs are asked as well, which may take a minute.
    with_bounds: bool = False


def record_roofline(request: RooflineRequest, progress: Progress) -> RooflineRun:
    """Measure the ceilings, the workloads, and the ceilings again; of each ceiling the best counts.

    A ceiling that was taken in a slow minute would call honest points impossible. `PerfsuiteError` where a probe or a
    worker failed, or a workload was disturbed again and again.
    """
    recorded_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    survey = request.survey
    bench = Bench(engine=request.engine, profile=survey.profile, board=survey.board, n_processes=request.n_processes)
    before = survey_device(survey, progress)
    bounds = measure_bounds(survey, progress) if request.with_bounds else ()
    base, engine = _measured(request.base, replace(bench, records_operators=True), progress)
    sweeps, sweeps_engine = _measured(request.sweeps, bench, progress)
    memory = measure_memories(tuple(filter(has_memory, (*request.base, *request.sweeps))), bench, progress)
    surveys = (before, *_surveyed_again(request, progress))
    return RooflineRun(
        suite_version=__version__,
        recorded_at=recorded_at,
        device=survey.profile.name,
        engine=engine or sweeps_engine,
        fingerprint=survey.board.facts().fingerprint,
        n_threads=survey.n_threads,
        survey=merge_surveys(surveys),
        rows=(*base, *sweeps),
        memory=memory,
        bounds=bounds,
    )


def _surveyed_again(request: RooflineRequest, progress: Progress) -> tuple[Survey, ...]:
    try:
        return (survey_device(request.survey, progress),)
    except PerfsuiteError as error:
        progress(f"the ceilings were not measured again: {error}")
        return ()


def has_memory(point: SweepPoint) -> bool:
    """Whether the memory of a workload is measured: of those that no sweep varies, and of the scenarios."""
    return point.sweep in (BASE, "scenario")


def _measured(points: Sequence[SweepPoint], bench: Bench, progress: Progress) -> tuple[tuple[Row, ...], str]:
    return measure_rows(points, bench, progress) if points else ((), "")


#: The end of the id of a statement about one case.
_REGIME = "/regime"


@dataclass(kw_only=True)
class RooflineSweeps(Experiment):
    """The sweeps that a run was asked for, under its device's roofline."""

    config: RunConfig
    points: tuple[SweepPoint, ...]
    #: What was measured.
    run: RooflineRun | None = None
    kind: str = "roofline"
    has_reference: bool = True
    _checks: dict[str, Statement] = field(default_factory=dict, init=False)

    def cases(self) -> Iterator[Case]:
        """Enumerate a case for each phase and whole run of each workload."""
        for point in self.points:
            yield from (Case(case_id=case_id, kind=self.kind) for case_id in _case_ids(point))

    def statements(self) -> Iterator[str]:
        """Name what is checked beside each case by itself: its regime, and the order within sweeps."""
        for point in self.points:
            yield from (f"{case_id}{_REGIME}" for case_id in _case_ids(point, _has_regime))
        yield from series_checks_of({point.sweep for point in self.points})
        yield from (f"memory/{point.workload.prefix}" for point in self.points if has_memory(point))
        yield from BOUNDED

    def _only(self, names: Collection[str]) -> tuple[SweepPoint, ...]:
        """Leave out the workloads of which no case and no statement is wanted; bounds alone leave the first."""
        points = tuple(point for point in self.points if any(each in names for each in _names(point)))
        return points or self.points[:1]

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return every process, and two of the ceilings before and after."""
        return 4 + len(self._only(case_ids)) * min(self.config.n_replicates, N_PROCESSES)

    def measure(self, case_ids: Selection, progress: ProgressLine) -> GroupSamples:
        """Measure the ceilings and every workload, and keep what was measured beside the run's file."""
        config, points = self.config, self._only(case_ids)
        request = RooflineRequest(
            survey=SurveyRequest(
                profile=config.profile,
                n_threads=config.n_threads,
                board=config.board,
                log_dir=config.run_dir,
                opencl_platform=config.opencl_platform,
            ),
            base=(),
            sweeps=points,
            with_bounds=any(each in case_ids for each in BOUNDED),
            engine=config.engine,
            n_processes=min(config.n_replicates, N_PROCESSES),
        )
        self.run = run = record_roofline(request, lambda text: progress.step(f"sweeps, {text}"))
        write_roofline(run, config.run_dir / "roofline.json")
        samples = {row.case: CaseSamples(case_id=row.case, samples_ns=row.samples_ns) for row in run.rows}
        for case in self.cases():
            samples.setdefault(case.case_id, CaseSamples(case_id=case.case_id, samples_ns=()))
        measured_with = {"engine": " ".join(run.engine.split()[:4]), "backend": config.backend}
        fingerprint = {**config.board.facts().fingerprint, **measured_with}
        return GroupSamples(samples=samples, fingerprint=fingerprint, description=run.engine)

    def expectation(self, case: Case) -> Expectation:
        """Return the least time that the ceilings allow a case."""
        row = next((row for row in self.run.rows if row.case == case.case_id), None) if self.run else None
        return (
            Expectation() if row is None or self.run is None else Expectation(floor_ns=round(floor_ns(self.run, row)))
        )

    def statement(self, name: str, reason: str) -> Statement:
        """Check a statement; undecided, with the reason, where nothing was measured."""
        if self.run is None:
            why = reason or "the sweeps were not measured"
            return Statement(name=name, claim="the sweeps are measured", holds=None, evidence=why)
        if not self._checks:
            self._checks = {check.name: check for check in all_checks(self.run)}
        if name not in self._checks and name in BOUNDED:
            return bound_check(self.run, name)
        unmeasured = Statement(
            name=name, claim="the case is measured", holds=None, evidence="no process has measured it"
        )
        return self._checks.get(name, unmeasured)


def open_experiments(config: RunConfig, *_: object) -> tuple[Experiment, ...]:
    """Enumerate the sweeps that were asked for; `PerfsuiteError` where one is unknown, or not of a file's weights."""
    subject = SweepSubject(
        weights=config.model,
        n_threads=config.n_threads,
        thread_counts=thread_counts(config.board.facts().usable_threads),
        is_long=config.long_sweeps,
        cache_dir=config.cache_dir / "models",
    )
    return (RooflineSweeps(config=config, points=sweep_points(config.sweeps, subject)),)


def _has_regime(point: SweepPoint, kind: RowKind) -> bool:
    scenario, moe = point.workload.scenario, point.workload.weights.architecture.moe
    is_routed = moe is not None and moe.n_dense_layers < point.workload.weights.architecture.n_layers
    return expected_regime(kind, scenario.n_prompt, is_routed=is_routed) is not None


def _names(point: SweepPoint) -> Iterator[str]:
    for case_id in _case_ids(point):
        yield case_id
        yield f"{case_id}{_REGIME}"
    yield from series_checks_of({point.sweep})
    if has_memory(point):
        yield f"memory/{point.workload.prefix}"


def _case_ids(
    point: SweepPoint, is_wanted: Callable[[SweepPoint, RowKind], bool] = lambda _point, _kind: True
) -> Iterator[str]:
    scenario = point.workload.scenario
    has = {RowKind.PREFILL: scenario.n_prompt > 0, RowKind.DECODE: scenario.n_gen > 0}
    has[RowKind.WHOLE_RUN] = all(has.values())
    name = subject_of(point.workload, point.n_threads).name
    for kind, is_there in has.items():
        if is_there and is_wanted(point, kind):
            yield f"roofline/{point.sweep}/{name}/{kind.value}"
