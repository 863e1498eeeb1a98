"""Measures the engine in pairs, old side against new, once for all phase and operator cases of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfsuite.errors import LinkError, MeasurementError
from perfsuite.experiments.engine_runs import llama_fingerprint, lost_events, run_plan
from perfsuite.experiments.pairs import (
    EnginePair,
    compare_series,
    device_notes,
    engine_record,
    lone_cases,
    lone_sides,
    lost_by_case,
    other_outputs_of,
    others_note,
    pair_of,
    pair_series,
    paired_judgements,
    pairs_by_case,
    pairs_speed_notes,
    too_few,
)
from perfsuite.experiments.phases.replicates import CheckedGraphs, check_graphs
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupWitness
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples
from perfsuite.measure.plan import forecast_limit_s
from perfsuite.measure.schedule import N_TURNS, Payload, Series
from perfsuite.records.case import Case, Expectation
from perfsuite.records.events import EngineRecord
from perfsuite.records.outcome import LEAST_PAIRS
from perfsuite.trace.observation import EngineObserver
from perfsuite.verdict.judge_pairs import NO_EXPECTATION
from perfsuite.verdict.pairs import (
    PairedVerdict,
    Suite,
    correlation_note,
    slower_at_worst,
)


def measure_pairs(
    config: RunConfig,
    cases: Sequence[Case],
    margins: Mapping[str, float],
    progress: ProgressLine,
    expect: Callable[[Case], Expectation] = lambda case: NO_EXPECTATION,
    *,
    budget_ratio: float = 1.0,
    forecast_s: float | None = None,
) -> GroupSamples:
    """Compare `config` with its old side, and judge each case by the margin of its id, and by what is expected of it.

    It takes `budget_ratio` of the run's budget, and half as much again where a case looks slower and is not
    proven, or pairs are too few for any verdict.
    `forecast_s` is what the scenario is forecast to take, once.

    Raises MeasurementError: a worker of either side fails at once.
    """
    assert config.old is not None
    plan = run_plan(config)
    n_runs = 2 * N_TURNS * (plan.n_repetitions + 1)  # with the warm-up of each turn
    witness = _Witness(config=config, group="llama", what="pairs of llama.cpp", progress=progress)
    series = pair_series(
        config.board,
        (run_plan(config.old), plan),
        keep=witness.keep,
        witness=witness,
        budget_s=config.budget_s * budget_ratio,
        extra_environment=config.opencl.environment() if config.opencl else {},
        limit_s=forecast_limit_s(forecast_s and forecast_s * n_runs),
    )
    verdicts, held_problems = _compared(config, series, cases, margins, progress)
    every_pair = (*series.valid, *witness.disturbed)
    differing, other_problems = other_outputs_of(config, every_pair)
    few, problems = too_few(series), (*other_problems, *held_problems)
    is_disturbed = bool(few) and not isinstance(series.broken_off_by, MeasurementError)
    of_every_pair = pairs_by_case(cases, every_pair) if is_disturbed else {}
    at_worst = slower_at_worst(
        of_every_pair,
        margins,
        Suite.of(cases),
        lost=lost_by_case(cases, every_pair, of_new_alone=True),
        n_disturbed=len(witness.disturbed),
    )
    checked, old = check_graphs(config, witness.first_new), check_graphs(config, witness.first_old)
    sides, unexpected = pairs_by_case(cases, series.valid), lone_cases(cases, series.valid)
    alone, is_same_work = lone_sides((*cases, *unexpected), series.valid), is_alike(config)
    judgements = paired_judgements(
        (*cases, *unexpected),
        {**sides, **alone, **{case_id: of_every_pair[case_id] for case_id in at_worst}},
        {**verdicts, **at_worst},
        margins,
        lambda case: (
            *problems,
            *(() if case.case_id in at_worst else few),
            *(() if case.case_id in alone else checked.problems.get((case.phase, case.role), ())),
            *((witness.lost,) if witness.lost and case.kind == "operator" else ()),
        ),
        lambda case: NO_EXPECTATION if (case.phase, case.role) in checked.otherwise else expect(case),
        is_alike=lambda case: is_same_work and _is_as_expected(case, old),
        step_share_ratio=config.step_share_ratio,
    )
    session, differences = config.old_session, config.old_differences
    changed = () if session is None else device_notes(config, session, judgements, differences)
    version = witness.first_new[0].engine_version if witness.first_new else "unknown"
    return replace(
        witness.taken(series),
        judgements=judgements,
        fingerprint=llama_fingerprint(config, version),
        peak_rss_bytes=witness.peak_rss_bytes or None,
        notes=(
            *differing,
            *witness.notes,
            *pairs_speed_notes(series.valid),
            *correlation_note(sides, Suite.of(cases)),
            *others_note(series.valid),
            *changed,
            *checked.notes,
        ),
        engine_version=version,
        description=f"{version}, build {config.engine.build_id}, against {config.old_text}"
        f" (build {config.old.engine.build_id})",
        found={case.case_id: case for case in unexpected},
        observation=replace(witness.observer.observation(), states=tuple(witness.states)),
        is_too_few=len(series.valid) < LEAST_PAIRS,
    )


def _is_as_expected(case: Case, checked: CheckedGraphs) -> bool:
    """Whether a side computes an operator as expected, or all of them where the case is a phase."""
    if case.kind == "phase":
        return not checked.problems
    return (case.phase, case.role) not in {**checked.problems, **checked.otherwise}


def is_alike(config: RunConfig) -> bool:
    """Whether the old side of a run has the same work to do, with as many threads."""
    assert config.old is not None
    new, old = config.workload, config.old.workload
    return config.n_threads == config.old.n_threads and old == replace(
        new, engine_graphs=old.engine_graphs, image_graph=old.image_graph
    )


@dataclass(kw_only=True)
class _Witness(GroupWitness):
    """Keeps what is shown of the pairs: the new side's tokens and operators, and the machine around each pair."""

    observer: EngineObserver = field(init=False)
    #: The first record of each side, for its graph; nothing before the first pair.
    first_old: tuple[EngineRecord, ...] = ()
    first_new: tuple[EngineRecord, ...] = ()
    #: The pairs that were left out.
    disturbed: list[EnginePair] = field(default_factory=list)
    peak_rss_bytes: int = 0
    #: Why the operators of a pair cannot be trusted, of the first such.
    lost: str | None = None

    def __post_init__(self) -> None:
        """Observe the run's scenario."""
        self.observer = EngineObserver(n_prompt=self.config.workload.scenario.n_prompt)

    def after(self, payloads: Sequence[Payload], complaint: str | None) -> None:
        """Keep what is left of a pair that is left out."""
        super().after(payloads, complaint)
        if complaint is not None:
            self.disturbed.append(pair_of(payloads))

    def keep(self, payloads: Sequence[Payload]) -> EnginePair:
        """Look at a pair that can be used, and reduce it."""
        old, new = map(engine_record, payloads)
        self.first_old, self.first_new = self.first_old or (old,), self.first_new or (new,)
        if self.config.backend == "cpu":
            self.lost = self.lost or lost_events((old, new))
        self.peak_rss_bytes = max(self.peak_rss_bytes, *(payload["peak_rss_bytes"] for payload in payloads))
        self.observer.add(new)
        return pair_of(payloads)


def _compared(
    config: RunConfig,
    series: Series[EnginePair],
    cases: Sequence[Case],
    margins: Mapping[str, float],
    progress: ProgressLine,
) -> tuple[Mapping[str, PairedVerdict], tuple[str, ...]]:
    """Take pairs until the cases are decided, or something breaks it off; return also what having the device came to.

    A worker that fails at once is an error.
    """
    problems: tuple[str, ...] = ()
    with series.broken_off():
        problems = config.board.held().problems
    verdicts = compare_series(
        series, cases, margins, step_share_ratio=config.step_share_ratio, announce=progress.extend_to, keeps=True
    )
    with series.broken_off():
        problems = config.board.held().problems
    if isinstance(series.broken_off_by, LinkError):  # a board that is lost has said what it had to say
        problems = config.board.held().problems
    return verdicts, problems
