"""Measures the engine in pairs, old side against new, once for all phase and operator cases of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from perfsuite.errors import LinkError, MeasurementError
from perfsuite.expectation.cases import GRAPH_PHASES, Case
from perfsuite.expectation.forecast import Expectation
from perfsuite.experiments.engine_replicates import graph_problems, llama_fingerprint, run_plan
from perfsuite.experiments.kept_speed import pairs_speed_notes
from perfsuite.experiments.machine_states import StateLog
from perfsuite.experiments.pairs import PairRun, pairs_by_case, weighty_cases
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import BreakOff, BusyMachine, GroupSamples, busy_text, how_broken_off
from perfsuite.experiments.run_config import RunConfig
from perfsuite.records.events import EngineRecord
from perfsuite.records.observation import Observation
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
) -> PairedGroup:
    """Compare `config` with its old side, and judge each case by the margin of its id, and by what is expected of it.

    Looking for changes takes `screen_ratio` of the budget at most; confirming them may take more.

    Raises MeasurementError: a worker of either side fails at once.
    """
    witness = _Witness(config, progress)
    busy = BusyMachine(config=config, progress=progress)
    run = _pair_run(config, witness, busy)
    compared = _compared(config, run, cases, margins, progress, screen_ratio)
    problems = (*_too_few(run, compared), *compared.problems)
    wrong = graph_problems(config, run.first_records[1:]) if run.first_records else {}
    judgements = paired_judgements(
        cases,
        pairs_by_case(cases, run.pairs),
        compared.verdicts,
        margins,
        lambda case: (*problems, *wrong.get((case.phase, case.role), ())),
        expect,
        step_share_ratio=config.step_share_ratio,
    )
    session, differences = config.old_session, config.old_differences
    changed = () if session is None else device_notes(config, session, judgements, differences)
    group = replace(_group(config, run), observation=witness.observation(), broken_off_by=compared.broken_off_by)
    return PairedGroup(group=replace(group, notes=(*busy.notes, *group.notes, *changed)), judgements=judgements)


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
    config: RunConfig,
    session: StoredSession,
    judgements: Mapping[str, Judgement],
    differences: tuple[str, ...],
) -> tuple[str, ...]:
    """Say whether the device is as it was when the session of the baseline was recorded."""
    change = device_change(
        session,
        {case_id: judgement.baseline_samples_ns for case_id, judgement in judgements.items()},
        spread_ratio=config.session_spread_ratio,
        differences=differences,
    )
    return (change.text,) if change.text else ()


class _Witness:
    """Keeps what is shown of the pairs: the new side's tokens and operators, and the machine around each pair."""

    def __init__(self, config: RunConfig, progress: ProgressLine) -> None:
        self._states = StateLog(group="llama", board=config.board, began_s=config.began_s)
        self._observer = EngineObserver(n_prompt=config.workload.scenario.n_prompt)
        self._progress = progress

    def announce(self, _: int) -> None:
        """Look at the machine: a pair is about to start."""
        self._progress.step("pairs of llama.cpp")
        self._states.before()

    def witness(self, payload: Mapping[str, Any], record: EngineRecord | None) -> None:
        """Keep what a pair's new side sent; without a record the pair is left out."""
        self._states.after(payload, is_valid=record is not None)
        if record is not None:
            self._observer.add(record)

    def observation(self) -> Observation:
        """Return what was kept."""
        return replace(self._observer.observation(), states=tuple(self._states.states))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """How comparing ended."""

    verdicts: Mapping[str, PairedVerdict]
    #: What having the device came to.
    problems: tuple[str, ...] = ()
    broken_off_by: BreakOff | None = None


def _pair_run(config: RunConfig, witness: _Witness, busy: BusyMachine) -> PairRun:
    assert config.old is not None
    return PairRun(
        plans=(run_plan(config.old), run_plan(config)),
        profile=config.profile,
        board=config.board,
        budget_s=config.budget_s,
        extra_environment=config.opencl.environment() if config.opencl else {},
        announce=witness.announce,
        witness=witness.witness,
        is_quiet_again=busy.is_quiet_again,
    )


def _compared(
    config: RunConfig,
    run: PairRun,
    cases: Sequence[Case],
    margins: Mapping[str, float],
    progress: ProgressLine,
    screen_ratio: float,
) -> _Compared:
    """Take pairs until the cases are decided, or something breaks it off; a worker that fails at once is an error."""

    def collect(n_pairs: int) -> Pairs:
        progress.extend_to(n_pairs)
        return pairs_by_case(cases, run.extend(n_pairs))

    def is_worth_it(case_id: str) -> bool:
        return case_id in weighty_cases(cases, run.pairs)

    verdicts: Mapping[str, PairedVerdict] = {}
    known: tuple[str, ...] = ()
    try:
        known = config.board.held().problems
        verdicts = compare_sequentially(
            collect,
            margins,
            may_go_on=partial(run.may_extend, share_ratio=screen_ratio),
            may_confirm=run.may_confirm,
            is_worth_it=is_worth_it,
            margins_at_first_look=partial(_margins_by_step, config, run, cases, margins),
            resolution_limit_ratio=min(PAIRS_RESOLUTION_RATIO, config.most_resolution_ratio),
        )
        return _Compared(verdicts=verdicts, problems=config.board.held().problems)
    except KeyboardInterrupt as error:  # as in `collect_replicates`
        return _Compared(verdicts=verdicts, problems=known, broken_off_by=error)
    except LinkError as error:  # a board that is lost has said what it had to say
        return _Compared(verdicts=verdicts, problems=config.board.held().problems, broken_off_by=error)
    except MeasurementError as error:
        if not run.pairs:
            raise
        return _Compared(verdicts=verdicts, problems=known, broken_off_by=error)


def _margins_by_step(
    config: RunConfig, run: PairRun, cases: Sequence[Case], margins: Mapping[str, float], pairs: Pairs
) -> dict[str, float]:
    """Return the change that passes in each case, a share of its step where that is more."""
    steps_ns = {
        phase: median(pair.old.phase_ns[phase] for pair in run.pairs)
        for phase in GRAPH_PHASES
        if run.pairs and all(phase in pair.old.phase_ns for pair in run.pairs)
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


def _too_few(run: PairRun, compared: _Compared) -> tuple[str, ...]:
    """Complain where an interruption or competition left fewer pairs than the first look needs.

    What ended the run once the cases were decided takes no verdict back.
    """
    broken_off_by = compared.broken_off_by
    if isinstance(broken_off_by, MeasurementError):
        return (str(broken_off_by),)
    if broken_off_by is not None and compared.verdicts:
        return ()
    if broken_off_by is not None:
        return (f"{how_broken_off(broken_off_by)} after {len(run.pairs)} pairs; run again",)
    if len(run.pairs) >= STANDARD_DESIGN.screen_looks[0]:
        return ()
    return (busy_text(run.complaints, len(run.pairs), "pairs"),)


def _group(config: RunConfig, run: PairRun) -> GroupSamples:
    version = run.first_records[1].engine_version if run.first_records else "unknown"
    assert config.old is not None
    return GroupSamples(
        samples={},
        fingerprint=llama_fingerprint(config, version),
        peak_rss_bytes=run.peak_rss_bytes or None,
        n_discarded=len(run.complaints),
        notes=pairs_speed_notes(run.pairs),
        engine_version=version,
        description=f"{version}, build {config.engine.build_id}, against {config.old_text}"
        f" (build {config.old.engine.build_id})",
    )
