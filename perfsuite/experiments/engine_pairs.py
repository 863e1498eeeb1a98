"""Measures the engine in pairs, old side against new, once for all phase and operator cases of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

from perfsuite.errors import LinkError
from perfsuite.expectation.cases import Case
from perfsuite.expectation.forecast import Expectation
from perfsuite.experiments.engine_replicates import check_graphs, llama_fingerprint, lost_events, run_plan
from perfsuite.experiments.kept_speed import pairs_speed_notes
from perfsuite.experiments.pairs import Pair, engine_record, pair_of, pair_series, pairs_by_case, weighty_cases
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupSamples, GroupWitness
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.schedule import N_TURNS, Payload, Series
from perfsuite.measure.worker_limit import forecast_limit_s
from perfsuite.records.events import GRAPH_PHASES, EngineRecord
from perfsuite.records.outcome import Judgement
from perfsuite.trace.observation import EngineObserver
from perfsuite.verdict.allowance import step_margin_ratio
from perfsuite.verdict.device_change import device_change
from perfsuite.verdict.entry import StoredSession
from perfsuite.verdict.judge_pairs import NO_EXPECTATION, judge_pairs
from perfsuite.verdict.sequential import STANDARD_DESIGN, PairedVerdict, Pairs, compare_sequentially

#: Pairs that rule out no less than this decide nothing, whatever may pass against stored times.
PAIRS_RESOLUTION_RATIO = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedGroup:
    """What a paired comparison gave."""

    group: GroupSamples
    judgements: Mapping[str, Judgement]


def measure_pairs(
    config: RunConfig,
    cases: Sequence[Case],
    margins: Mapping[str, float],
    progress: ProgressLine,
    expect: Callable[[Case], Expectation] = lambda case: NO_EXPECTATION,
    *,
    screen_ratio: float = 1.0,
    forecast_s: float | None = None,
) -> PairedGroup:
    """Compare `config` with its old side, and judge each case by the margin of its id, and by what is expected of it.

    Looking for changes takes `screen_ratio` of the budget at most; confirming them may take more.
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
        config.profile,
        keep=witness.keep,
        witness=witness,
        budget_s=config.budget_s,
        extra_environment=config.opencl.environment() if config.opencl else {},
        limit_s=forecast_limit_s(forecast_s and forecast_s * n_runs),
    )
    verdicts, held_problems = _compared(config, series, cases, margins, progress, screen_ratio)
    problems = (*too_few(series, verdicts), *held_problems)
    checked = check_graphs(config, witness.first_new)
    judgements = paired_judgements(
        cases,
        pairs_by_case(cases, series.valid),
        verdicts,
        margins,
        lambda case: (
            *problems,
            *checked.problems.get((case.phase, case.role), ()),
            *((witness.lost,) if witness.lost and case.kind == "operator" else ()),
        ),
        lambda case: NO_EXPECTATION if (case.phase, case.role) in checked.otherwise else expect(case),
        step_share_ratio=config.step_share_ratio,
    )
    session, differences = config.old_session, config.old_differences
    changed = () if session is None else device_notes(config, session, judgements, differences)
    version = witness.first_new[0].engine_version if witness.first_new else "unknown"
    group = GroupSamples(
        samples={},
        fingerprint=llama_fingerprint(config, version),
        peak_rss_bytes=witness.peak_rss_bytes or None,
        n_discarded=len(series.complaints),
        notes=(*witness.notes, *pairs_speed_notes(series.valid), *changed, *checked.notes),
        engine_version=version,
        description=f"{version}, build {config.engine.build_id}, against {config.old_text}"
        f" (build {config.old.engine.build_id})",
        observation=replace(witness.observer.observation(), states=tuple(witness.states)),
        broken_off_by=series.broken_off_by,
    )
    return PairedGroup(group=group, judgements=judgements)


def paired_judgements(
    cases: Sequence[Case],
    sides: Pairs,
    verdicts: Mapping[str, PairedVerdict],
    margins: Mapping[str, float],
    problems: Callable[[Case], tuple[str, ...]],
    expect: Callable[[Case], Expectation],
    *,
    step_share_ratio: float = 0.0,
) -> dict[str, Judgement]:
    """Judge each case of a paired comparison by what its pairs say, and by what is expected of it."""
    return {
        case.case_id: judge_pairs(
            case,
            sides.get(case.case_id, ((), ())),
            verdicts.get(case.case_id),
            margin_ratio=margins[case.case_id],
            problems=problems(case),
            expectation=expect(case),
            step_share_ratio=step_share_ratio,
        )
        for case in cases
    }


def device_notes(
    config: RunConfig, session: StoredSession, judgements: Mapping[str, Judgement], differences: tuple[str, ...]
) -> tuple[str, ...]:
    """Say whether the device is as it was when the session of the baseline was recorded."""
    change = device_change(
        session,
        {case_id: judgement.baseline_samples_ns for case_id, judgement in judgements.items()},
        spread_ratio=config.session_spread_ratio,
        differences=differences,
    )
    return (change.text,) if change.text else ()


@dataclass(kw_only=True)
class _Witness(GroupWitness):
    """Keeps what is shown of the pairs: the new side's tokens and operators, and the machine around each pair."""

    observer: EngineObserver = field(init=False)
    #: The new side's first record, for its graph; nothing before the first pair.
    first_new: tuple[EngineRecord, ...] = ()
    peak_rss_bytes: int = 0
    #: Why the operators of a pair cannot be trusted, of the first such.
    lost: str | None = None

    def __post_init__(self) -> None:
        """Observe the run's scenario."""
        self.observer = EngineObserver(n_prompt=self.config.workload.scenario.n_prompt)

    def keep(self, payloads: Sequence[Payload]) -> Pair:
        """Look at a pair that can be used, and reduce it."""
        old, new = map(engine_record, payloads)
        self.first_new = self.first_new or (new,)
        if self.config.backend == "cpu":
            self.lost = self.lost or lost_events((old, new))
        self.peak_rss_bytes = max(self.peak_rss_bytes, *(payload["peak_rss_bytes"] for payload in payloads))
        self.observer.add(new)
        return pair_of(old, new)


def _compared(
    config: RunConfig,
    series: Series[Pair],
    cases: Sequence[Case],
    margins: Mapping[str, float],
    progress: ProgressLine,
    screen_ratio: float,
) -> tuple[Mapping[str, PairedVerdict], tuple[str, ...]]:
    """Take pairs until the cases are decided, or something breaks it off; return also what having the device came to.

    A worker that fails at once is an error.
    """

    def collect(n_pairs: int) -> Pairs:
        progress.extend_to(n_pairs)
        return pairs_by_case(cases, series.extend(n_pairs))

    verdicts: Mapping[str, PairedVerdict] = {}
    problems: tuple[str, ...] = ()
    with series.broken_off():
        problems = config.board.held().problems
        verdicts = compare_sequentially(
            collect,
            margins,
            may_go_on=partial(series.may_screen, share_ratio=screen_ratio),
            may_confirm=series.may_confirm,
            is_worth_it=lambda case_id: case_id in weighty_cases(cases, series.valid),
            margins_at_first_look=partial(_margins_by_step, config, series, cases, margins),
            resolution_limit_ratio=min(PAIRS_RESOLUTION_RATIO, config.most_resolution_ratio),
        )
        problems = config.board.held().problems
    if isinstance(series.broken_off_by, LinkError):  # a board that is lost has said what it had to say
        problems = config.board.held().problems
    return verdicts, problems


def _margins_by_step(
    config: RunConfig, series: Series[Pair], cases: Sequence[Case], margins: Mapping[str, float], pairs: Pairs
) -> dict[str, float]:
    """Return the change that passes in each case, a share of its step where that is more."""
    taken = series.valid
    steps_ns = {
        phase: median(pair.old.phase_ns[phase] for pair in taken)
        for phase in GRAPH_PHASES
        if taken and all(phase in pair.old.phase_ns for pair in taken)
    }
    return {
        case.case_id: step_margin_ratio(
            case,
            margins[case.case_id],
            case_ns=median(pairs[case.case_id][0]) if case.case_id in pairs else 0.0,
            steps_ns=steps_ns,
            share_ratio=config.step_share_ratio,
        )
        for case in cases
    }


def too_few(series: Series[Any], verdicts: Mapping[str, PairedVerdict]) -> tuple[str, ...]:
    """Complain where an interruption or competition left fewer pairs than the first look needs.

    What ended the run once the cases were decided takes no verdict back.
    """
    n_needed = STANDARD_DESIGN.screen_looks[0]
    is_enough = len(series.valid) >= n_needed if series.broken_off_by is None else bool(verdicts)
    return tuple(filter(None, [series.shortage("pairs", is_enough=is_enough)]))
