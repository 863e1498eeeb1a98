"""Pairs of fresh processes that take turns, each process reduced to one sample a case."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Any, Protocol

from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.contention import Contention
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan
from perfsuite.measure.schedule import Payload, Series, Witness, pair_complaint, pairs_of
from perfsuite.records.case import Case, Expectation
from perfsuite.records.events import GRAPH_PHASES, EngineRecord, Phase
from perfsuite.records.outcome import LEAST_PAIRS, Judgement
from perfsuite.trace.samples import ReplicateSamples, faster_half_mean, replicate_samples
from perfsuite.verdict.allowance import step_of
from perfsuite.verdict.device_change import device_change
from perfsuite.verdict.entry import StoredSession
from perfsuite.verdict.judge_pairs import judge_pairs
from perfsuite.verdict.outputs import OutputErrors, other_outputs, output_errors
from perfsuite.verdict.pairs import LOOKS, PairedVerdict, Pairs

#: A case is worth more pairs from this share of its phase on, or from this time on.
_WEIGHTY_RATIO = 0.01
_WEIGHTY_NS = 100_000

#: Of more pairs than this a case may not be missing and be judged by the others.
_MOST_LACKING_RATIO = 1 / 8

#: Nobody needs to know that others took less.
_LEAST_OTHERS_RATIO = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What two processes measured side by side, turn by turn."""

    old: ReplicateSamples
    new: ReplicateSamples
    #: Every single latency of each phase on both sides, ns, as other tools would judge them.
    old_repetitions_ns: Mapping[Phase, tuple[int, ...]]
    new_repetitions_ns: Mapping[Phase, tuple[int, ...]]
    #: By phase: by how much longer, in logarithms, the old and the new side took at most for what others took of the
    #: processors.
    lost: Mapping[Phase, tuple[float, float]] = field(default_factory=dict)
    #: What others took at most of the time of the old and of the new side, as shares.
    others_ratio: tuple[float, float] = (0.0, 0.0)
    #: How far the outputs of the two lie apart.
    output_errors: OutputErrors = field(default_factory=dict)


def pair_series(
    board: Board,
    plans: tuple[LlamaPlan, LlamaPlan],
    *,
    keep: Callable[[Sequence[Payload]], Pair] | None = None,
    witness: Witness | None = None,
    budget_s: float | None = None,
    extra_environment: Mapping[str, str] | None = None,
    order: random.Random | None = None,
    limit_s: float = WORKER_LIMIT_S,
) -> Series[Pair]:
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


def pair_of(payloads: Sequence[Payload]) -> Pair:
    """Reduce what two processes that took turns have sent."""
    old, new = map(engine_record, payloads)
    return Pair(
        lost=lost_of(payloads),
        others_ratio=(_others_ratio(payloads[0]), _others_ratio(payloads[1])),
        output_errors=output_errors(old, new),
        old=replicate_samples(old, faster_half_mean),
        new=replicate_samples(new, faster_half_mean),
        old_repetitions_ns=_repetitions(old),
        new_repetitions_ns=_repetitions(new),
    )


def _others_ratio(payload: Payload) -> float:
    return Contention.from_plain(payload["contention"]).lost_ratio


class HasOutputErrors(Protocol):
    """Two processes whose outputs were compared, as `Pair`."""

    @property
    def output_errors(self) -> OutputErrors:
        """How far the outputs of the two lie apart."""


def outputs_problem(pairs: Sequence[HasOutputErrors]) -> tuple[str, ...]:
    """Say that the two sides compute something else, where they do; nothing else about them counts then."""
    return tuple(filter(None, [other_outputs(pair.output_errors for pair in pairs)]))


def other_outputs_of(config: RunConfig, pairs: Sequence[HasOutputErrors]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the same as the notes of a run whose sides are to compute the same, and as problems of its cases."""
    differing = outputs_problem(pairs) if config.compares_outputs else ()
    return differing, () if config.allows_other_output else differing


def others_note(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Say what others took of both sides, where it is worth a word; nothing of a quiet machine."""
    old, new = (fmean(each.others_ratio[side] for each in pairs) if pairs else 0.0 for side in (0, 1))
    if max(old, new) < _LEAST_OTHERS_RATIO:
        return ()
    taken = f"{old * 100:.0f} % of the old side's time and {new * 100:.0f} % of the new side's"
    return (f"others took up to {taken}, in the mean of {len(pairs)} pairs; verdicts hold with that taken off, too",)


def lost_of(sides: Sequence[Payload]) -> dict[Phase, tuple[float, float]]:
    """Return by how much longer both sides took at most for what others took, as `Pair` has it."""
    old, new = ({Phase.END_TO_END.value: side["contention"], **side.get("contention_by_phase", {})} for side in sides)
    return {Phase(name): (_lost(old[name]), _lost(new[name])) for name in old if name in new}


def _lost(contention: Mapping[str, Any]) -> float:
    return -math.log1p(-Contention.from_plain(contention).lost_ratio)


def lost_by_case(
    cases: Sequence[Case], pairs: Sequence[Pair], *, of_new_alone: bool = False
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


def _lost_in(phase: Phase | None, pair: Pair) -> tuple[float, float]:
    whole = pair.lost.get(Phase.END_TO_END, (0.0, 0.0))
    return whole if phase is None else pair.lost.get(phase, whole)


def weighty_cases(cases: Sequence[Case], pairs: Sequence[Pair]) -> frozenset[str]:
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


def pairs_by_case(cases: Sequence[Case], pairs: Sequence[Pair]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return old and new samples, ns, of each case that all pairs but few measured with a positive time, of these."""
    complete = {case: _complete(case, pairs) for case in cases}
    return {
        case.case_id: (_times_ns(case, (pair.old for pair in found)), _times_ns(case, (pair.new for pair in found)))
        for case, found in complete.items()
        if found and len(pairs) - len(found) <= len(pairs) * _MOST_LACKING_RATIO
    }


def lone_sides(cases: Sequence[Case], pairs: Sequence[Pair]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the samples, ns, of each case that one side alone measured; the other one has none."""
    sides = {
        case.case_id: (_times_ns(case, (pair.old for pair in pairs)), _times_ns(case, (pair.new for pair in pairs)))
        for case in cases
    }
    return {case_id: (old_ns, new_ns) for case_id, (old_ns, new_ns) in sides.items() if bool(old_ns) != bool(new_ns)}


def lone_cases(cases: Sequence[Case], pairs: Sequence[Pair]) -> tuple[Case, ...]:
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


def _complete(case: Case, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs in which both sides measured a case."""
    return [pair for pair in pairs if all(_times_ns(case, (side,)) for side in (pair.old, pair.new))]


def _times_ns(case: Case, side: Iterable[ReplicateSamples]) -> tuple[int, ...]:
    """Return what the processes of a side took that measured a positive time."""
    return tuple(taken_ns for each in side if (taken_ns := each.of_case(case) or 0) > 0)


def paired_judgements(
    cases: Sequence[Case],
    sides: Pairs,
    verdicts: Mapping[str, PairedVerdict],
    margins: Mapping[str, float],
    problems: Callable[[Case], tuple[str, ...]],
    expect: Callable[[Case], Expectation],
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
