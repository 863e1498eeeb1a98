"""Pairs of fresh processes that take turns, each process reduced to one sample a case."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, Profile
from perfsuite.expectation.cases import operator_cases, phase_cases
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.kept_speed import pairs_note
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.contention import Contention
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan
from perfsuite.measure.schedule import Payload, Series, Witness, pair_complaint, pairs_of
from perfsuite.records.case import Case, Expectation
from perfsuite.records.events import GRAPH_PHASES, EngineRecord, Phase
from perfsuite.records.outcome import LEAST_PAIRS, Judgement
from perfsuite.trace.samples import ReplicateSamples, faster_half_mean, replicate_samples
from perfsuite.verdict.allowance import step_margin_ratio, step_of
from perfsuite.verdict.attribution import carrier_of
from perfsuite.verdict.drift import device_change
from perfsuite.verdict.entry import StoredSession
from perfsuite.verdict.judge_pairs import NO_EXPECTATION, judge_pairs
from perfsuite.verdict.outputs import OutputErrors, other_outputs, output_errors
from perfsuite.verdict.pairs import LOOKS, PairedVerdict, Pairs, Suite, compare_in_looks

#: A case is worth more pairs from this share of its phase on, or from this time on.
_WEIGHTY_RATIO = 0.01
_WEIGHTY_NS = 100_000

#: Of more pairs than this a case may not be missing and be judged by the others.
_MOST_LACKING_RATIO = 1 / 8

#: Nobody needs to know that others took less.
_LEAST_OTHERS_RATIO = 0.02


class Side(Protocol):
    """What one process of a pair took, as `ReplicateSamples` has it."""

    @property
    def phase_ns(self) -> Mapping[Phase, int]:
        """The sample of each phase, of which other cases are shares."""

    def of_case(self, case: Case) -> int | None:
        """Return the sample of a case, ns; None where the process did not record it."""


Taken = TypeVar("Taken", bound=Side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Generic[Taken]):
    """What two processes measured side by side, turn by turn."""

    old: Taken
    new: Taken
    #: Every single latency of each phase on both sides, ns, as other tools would judge them.
    old_repetitions_ns: Mapping[Phase, tuple[int, ...]] = field(default_factory=dict)
    new_repetitions_ns: Mapping[Phase, tuple[int, ...]] = field(default_factory=dict)
    #: By phase: by how much longer, in logarithms, the old and the new side took at most for what others took of the
    #: processors.
    lost: Mapping[Phase, tuple[float, float]] = field(default_factory=dict)
    #: What others took at most of the time of the old and of the new side, as shares.
    others_ratio: tuple[float, float] = (0.0, 0.0)
    #: How far the outputs of the two lie apart.
    output_errors: OutputErrors = field(default_factory=dict)


#: Of two processes of the engine.
EnginePair: TypeAlias = Pair[ReplicateSamples]


def pair_series(
    board: Board,
    plans: tuple[LlamaPlan, LlamaPlan],
    *,
    keep: Callable[[Sequence[Payload]], EnginePair] | None = None,
    witness: Witness | None = None,
    budget_s: float | None = None,
    extra_environment: Mapping[str, str] | None = None,
    order: random.Random | None = None,
    limit_s: float = WORKER_LIMIT_S,
) -> Series[EnginePair]:
    """Return the pairs of an old and a new plan, none of them taken; threads are bound on both sides or on none."""
    binds_threads = all(plan.binds_threads for plan in plans)
    old, new = (replace(plan, binds_threads=binds_threads) for plan in plans)
    return Series(
        take=pairs_of(
            board, (old, new), order=order or random.Random(), extra_environment=extra_environment, limit_s=limit_s
        ),
        complain=pair_complaint,
        keep=keep or pair_of,
        witness=witness or Witness(),
        budget_s=budget_s,
        n_first=LOOKS[0][0],
    )


def engine_record(payload: Payload) -> EngineRecord:
    """Return the record of a process of the engine."""
    return EngineRecord.from_plain(payload.get("engine"))


def pair_of(payloads: Sequence[Payload]) -> EnginePair:
    """Reduce what two processes of the engine that took turns have sent."""
    return pair_by(payloads, lambda _, record: replicate_samples(record, faster_half_mean))


def pair_by(payloads: Sequence[Payload], reduce: Callable[[Payload, EngineRecord], Taken]) -> Pair[Taken]:
    """Reduce what two processes that took turns have sent, each by its payload and the engine's record in it."""
    old, new = map(engine_record, payloads)
    return Pair(
        lost=_lost_of(payloads),
        others_ratio=(_others_ratio(payloads[0]), _others_ratio(payloads[1])),
        output_errors=output_errors(old, new),
        old=reduce(payloads[0], old),
        new=reduce(payloads[1], new),
        old_repetitions_ns=_repetitions(old),
        new_repetitions_ns=_repetitions(new),
    )


def _others_ratio(payload: Payload) -> float:
    return Contention.from_plain(payload["contention"]).lost_ratio


def outputs_problem(pairs: Sequence[Pair[Any]]) -> tuple[str, ...]:
    """Say that the two sides compute something else, where they do; nothing else about them counts then."""
    return tuple(filter(None, [other_outputs(pair.output_errors for pair in pairs)]))


def other_outputs_of(config: RunConfig, pairs: Sequence[Pair[Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the same as the notes of a run whose sides are to compute the same, and as problems of its cases."""
    differing = outputs_problem(pairs) if config.compares_outputs else ()
    return differing, () if config.allows_other_output else differing


def others_note(pairs: Sequence[Pair[Any]]) -> tuple[str, ...]:
    """Say what others took of both sides, where it is worth a word; nothing of a quiet machine."""
    old, new = (fmean(each.others_ratio[side] for each in pairs) if pairs else 0.0 for side in (0, 1))
    if max(old, new) < _LEAST_OTHERS_RATIO:
        return ()
    taken = f"{old * 100:.0f} % of the old side's time and {new * 100:.0f} % of the new side's"
    return (f"others took up to {taken}, in the mean of {len(pairs)} pairs; verdicts hold with that taken off, too",)


def _lost_of(sides: Sequence[Payload]) -> dict[Phase, tuple[float, float]]:
    """Return by how much longer both sides took at most for what others took, as `Pair` has it."""
    old, new = ({Phase.END_TO_END.value: side["contention"], **side.get("contention_by_phase", {})} for side in sides)
    return {Phase(name): (_lost(old[name]), _lost(new[name])) for name in old if name in new}


def _lost(contention: Mapping[str, Any]) -> float:
    return -math.log1p(-Contention.from_plain(contention).lost_ratio)


def lost_by_case(
    cases: Sequence[Case], pairs: Sequence[Pair[Any]], *, of_new_alone: bool = False
) -> dict[str, tuple[float, ...]]:
    """Return by case what others took of the new side of each pair, less what they took of the old one.

    It is that of the phase that the case is in, or of the whole turn; `of_new_alone`, it is the most by which they can
    have made that side look slower.
    """
    return {
        case.case_id: tuple(
            new - (0.0 if of_new_alone else old)
            for pair in _complete(case, pairs)
            for old, new in (_lost_in(step_of(case) or case.phase, pair),)
        )
        for case in cases
    }


def _lost_in(phase: Phase | None, pair: Pair[Any]) -> tuple[float, float]:
    whole = pair.lost.get(Phase.END_TO_END, (0.0, 0.0))
    return whole if phase is None else pair.lost.get(phase, whole)


def weighty_cases(cases: Sequence[Case], pairs: Sequence[Pair[Any]]) -> frozenset[str]:
    """Return the cases that are worth more pairs: an operator by its share of its phase, a phase by that of a token.

    What takes long enough by itself is worth them whatever its share.
    """
    samples = pairs_by_case(cases, pairs)
    old_ns = {case: median(samples[case.case_id][0]) for case in cases if case.case_id in samples}
    wholes = {case.phase: whole for case, whole in old_ns.items() if case.kind == "phase"}
    token_ns = min((wholes[phase] for phase in GRAPH_PHASES if phase in wholes), default=0)
    return frozenset(
        case.case_id
        for case, spent_ns in old_ns.items()
        if spent_ns >= _WEIGHTY_NS
        or spent_ns >= _WEIGHTY_RATIO * (token_ns if case.kind == "phase" else wholes.get(case.phase, token_ns))
    )


def _repetitions(record: EngineRecord) -> dict[Phase, tuple[int, ...]]:
    durations: dict[Phase, list[int]] = defaultdict(list)
    for span in record.spans:
        durations[span.phase].append(span.duration_ns)
    return {phase: tuple(found) for phase, found in durations.items()}


def pairs_by_case(
    cases: Sequence[Case], pairs: Sequence[Pair[Any]]
) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return old and new samples, ns, of each case that all pairs but few measured with a positive time, of these."""
    complete = {case: _complete(case, pairs) for case in cases}
    return {
        case.case_id: (_times_ns(case, (pair.old for pair in found)), _times_ns(case, (pair.new for pair in found)))
        for case, found in complete.items()
        if found and len(pairs) - len(found) <= len(pairs) * _MOST_LACKING_RATIO
    }


def lone_sides(cases: Sequence[Case], pairs: Sequence[Pair[Any]]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the samples, ns, of each case that one side alone measured; the other one has none."""
    sides = {
        case.case_id: (_times_ns(case, (pair.old for pair in pairs)), _times_ns(case, (pair.new for pair in pairs)))
        for case in cases
    }
    return {case_id: (old_ns, new_ns) for case_id, (old_ns, new_ns) in sides.items() if bool(old_ns) != bool(new_ns)}


def lone_cases(cases: Sequence[Case], pairs: Sequence[Pair[Any]]) -> tuple[Case, ...]:
    """Return the operators of the phases among the cases that one side alone has, and that are none of the cases."""
    known = {case.case_id for case in cases}
    sides = [side for pair in pairs for side in (pair.old, pair.new)]
    found = {
        f"operator/{whole.case_id.removeprefix('phase/')}/{role}": (whole.phase, role)
        for whole in cases
        if whole.kind == "phase" and whole.phase is not None
        for side in sides
        for role in side.operator_ns.get(whole.phase, ())
    }
    unknown = [
        Case(case_id=case_id, kind="operator", phase=phase, role=role)
        for case_id, (phase, role) in found.items()
        if case_id not in known
    ]
    alone = lone_sides(unknown, pairs)
    return tuple(case for case in unknown if case.case_id in alone)


def _complete(case: Case, pairs: Sequence[Pair[Any]]) -> list[Pair[Any]]:
    """Return the pairs in which both sides measured a case."""
    return [pair for pair in pairs if all(_times_ns(case, (side,)) for side in (pair.old, pair.new))]


def _times_ns(case: Case, side: Iterable[Side]) -> tuple[int, ...]:
    """Return what the processes of a side took that measured a positive time."""
    return tuple(taken_ns for each in side if (taken_ns := each.of_case(case) or 0) > 0)


def compare_series(
    series: Series[EnginePair],
    cases: Sequence[Case],
    margins: Mapping[str, float],
    *,
    step_share_ratio: float = 0.0,
    announce: Callable[[int], None] = lambda n_pairs: None,
    keeps: bool = False,
) -> dict[str, PairedVerdict]:
    """Take pairs until the cases are decided, or the time is up; `announce` hears how many will be there.

    Where it `keeps`, what was taken until something breaks it off counts; a worker that fails at once is an error.
    """

    def collect(n_pairs: int, is_extra: bool) -> Pairs:
        announce(n_pairs)
        if series.broken_off_by is None:
            with series.broken_off() if keeps else nullcontext():
                series.extend(n_pairs, is_extra=is_extra)
        return pairs_by_case(cases, series.valid)

    return compare_in_looks(
        collect,
        margins,
        Suite.of(cases),
        lost=lambda: lost_by_case(cases, series.valid),
        margins_at=lambda sides: margins_by_step(cases, margins, sides, series.valid, step_share_ratio),
        is_worth_it=lambda case_id: case_id in weighty_cases(cases, series.valid),
        n_affordable=lambda: series.n_affordable,
    )


def margins_by_step(
    cases: Sequence[Case],
    margins: Mapping[str, float],
    sides: Pairs,
    pairs: Sequence[Pair[Any]],
    step_share_ratio: float,
) -> dict[str, float]:
    """Return the change that passes in each case, a share of its step where that is more."""
    steps_ns = {
        phase: median(pair.old.phase_ns[phase] for pair in pairs)
        for phase in GRAPH_PHASES
        if pairs and all(phase in pair.old.phase_ns for pair in pairs)
    }
    return {
        case.case_id: step_margin_ratio(
            case,
            margins[case.case_id],
            case_ns=median(sides[case.case_id][0]) if case.case_id in sides else 0.0,
            steps_ns=steps_ns,
            share_ratio=step_share_ratio,
        )
        for case in cases
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSetup:
    """What all comparisons on a device share that are made outside of pytest."""

    cases: tuple[Case, ...]
    #: By case id.
    margins: Mapping[str, float]
    budget_s: float

    @classmethod
    def of(cls, workload: LlamaWorkload, profile: Profile, budget_s: float) -> ComparisonSetup:
        """Compare all phases and operators of a workload, each with the margin of the device."""
        cases = (*phase_cases(workload), *operator_cases(workload))
        margins = {case.case_id: profile.margin_ratio.get(case.kind, DEFAULT_MARGIN_RATIO) for case in cases}
        return cls(cases=cases, margins=margins, budget_s=budget_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlans:
    """What a comparison gave."""

    judgements: tuple[Judgement, ...]
    pairs: tuple[EnginePair, ...]
    n_discarded: int
    duration_s: float

    @property
    def carrier(self) -> str | None:
        """The role whose REGRESSED operators lost the most."""
        return carrier_of(self.judgements)


def compare_plans(
    setup: ComparisonSetup, plans: tuple[LlamaPlan, LlamaPlan], board: Board, witness: Witness | None = None
) -> ComparedPlans:
    """Take pairs of an old and a new plan until the questions are decided, or the time is up; judge them.

    Raises MeasurementError: a process fails, or others have most of the device.
    """
    series = pair_series(board, plans, witness=witness, budget_s=setup.budget_s)
    verdicts = compare_series(series, setup.cases, setup.margins)
    duration_s, pairs = series.elapsed_s, tuple(series.valid)
    cases = (*setup.cases, *lone_cases(setup.cases, pairs))
    sides = {**pairs_by_case(cases, pairs), **lone_sides(cases, pairs)}
    few = () if len(pairs) >= LEAST_PAIRS else ("too few pairs without competition",)
    problems = (*outputs_problem(pairs), *few)
    judgements = paired_judgements(cases, sides, verdicts, setup.margins, lambda case: problems)
    return ComparedPlans(
        judgements=tuple(judgements.values()),
        pairs=pairs,
        n_discarded=len(series.complaints),
        duration_s=round(duration_s, 3),
    )


def paired_judgements(
    cases: Sequence[Case],
    sides: Pairs,
    verdicts: Mapping[str, PairedVerdict],
    margins: Mapping[str, float],
    problems: Callable[[Case], tuple[str, ...]],
    expect: Callable[[Case], Expectation] = lambda case: NO_EXPECTATION,
    *,
    is_alike: Callable[[Case], bool] = lambda case: True,
    step_share_ratio: float = 0.0,
) -> dict[str, Judgement]:
    """Judge each case of a paired comparison by what its pairs say, and by what is expected of it.

    The floor is that of the old side too, where `is_alike`: it does the same work.
    """
    return {
        case.case_id: judge_pairs(
            case,
            sides.get(case.case_id, ((), ())),
            verdicts.get(case.case_id),
            margin_ratio=margins.get(case.case_id, 0.0),
            problems=problems(case),
            expectation=expected,
            old_floor_ns=expected.floor_ns if is_alike(case) else None,
            step_share_ratio=step_share_ratio,
        )
        for case in cases
        for expected in (expect(case),)
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
    return (change.text,)


def too_few(series: Series[Any]) -> tuple[str, ...]:
    """Complain where an interruption or competition left fewer pairs than any verdict needs."""
    return tuple(filter(None, [series.shortage("pairs", is_enough=len(series.valid) >= LEAST_PAIRS)]))


def pairs_speed_notes(pairs: Sequence[Pair[Any]]) -> tuple[str, ...]:
    """Tell where pairs were not measured at one speed, by the old side's prompt, or its decode where it has none."""
    for phase in GRAPH_PHASES:
        if pairs and all(phase in pair.old.phase_ns for pair in pairs):
            note = pairs_note([pair.old.phase_ns[phase] for pair in pairs])
            return () if note is None else (note,)
    return ()
