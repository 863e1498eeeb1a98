"""llama-cpp-python beside the native driver, in pairs: what it adds to a request, and whether its spans explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec

from perfsuite.measure.board.protocol import Board
from perfsuite.measure.contention import Contention
from perfsuite.measure.plan import BindingPlan, LlamaPlan, TurnsPlan
from perfsuite.measure.schedule import Payload
from perfsuite.records.binding import ITL, TOKENS_PER_S, TTFT, BindingRecord, Door, Part
from perfsuite.records.case import Case
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.trace.binding import binding_samples, token_gaps_ns
from perfsuite.trace.samples import faster_half_mean
from perfsuite.verdict.pairs import QUESTION_ERROR, SHOWN_ERROR, PairedChange, compare_pairs

#: The last part of the cases' ids.
OVERHEAD = "overhead"

#: The wholes of a request, by the phases that they are of.
WHOLES = {TTFT: Phase.PREFILL, ITL: Phase.DECODE}

#: Fewer pairs with the native driver judge nothing.
LEAST_PAIRS = 3

#: What the binding may take beyond the native driver and what its own spans explain.
UNEXPLAINED_RATIO = 0.02

#: The one-sided errors of SLOW, as of a question of a run, and of the bounds that are shown and that a PASS rests on.
_SLOW_ERROR, _SHOWN_ERROR = QUESTION_ERROR / len(Door), SHOWN_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingSide:
    """What one process beneath the binding took."""

    #: By subject.
    samples_ns: Mapping[str, int]
    #: By door: from each token to the next.
    gaps_ns: Mapping[Door, tuple[int, ...]]
    span_cost_ns: int
    engine: EngineRecord

    @property
    def phase_ns(self) -> Mapping[Phase, int]:
        """What a prompt and a token of a completion took, of which parts are shares."""
        found = {phase: self.samples_ns.get(f"{Door.COMPLETION.value}/{whole}") for whole, phase in WHOLES.items()}
        return {phase: taken_ns for phase, taken_ns in found.items() if taken_ns is not None}

    def of_case(self, case: Case) -> int | None:
        """Return the sample of a case, ns; None where the process did not record it."""
        return self.samples_ns.get(case.role or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePair:
    """What the binding and the native driver took side by side."""

    binding: BindingSide
    #: The native driver's time to the first token, of each further one, and of a request by its tokens, ns.
    native_ns: Mapping[str, float]
    #: What a greedy choice takes there, which the binding's sampling takes the place of.
    native_sampling_ns: float
    #: Tokens of a request after the first.
    n_gen: int


def run_pair(board: Board, plan: LlamaPlan, leader: int, *, n_turns: int, has_sentinels: bool = True) -> Payload:
    """Let the native driver and the binding take turns; the payload is the binding's, with the native record in it."""
    plans: Any = (TurnsPlan(llama=plan), BindingPlan(llama=plan, has_sentinels=has_sentinels))
    native, binding = board.run_in_turns(plans, n_turns=n_turns, leader=leader)
    both = [Contention.from_plain(each["contention"]) for each in (native, binding)]
    return {**binding, "native": native["engine"], "contention": Contention.total(both).to_plain()}


def side_of(payload: Payload, engine: EngineRecord) -> BindingSide:
    """Reduce what a process beneath the binding has sent."""
    record = msgspec.convert(payload["binding"], BindingRecord)
    return BindingSide(
        samples_ns=binding_samples(record),
        gaps_ns={door: token_gaps_ns(record, door) for door in Door},
        span_cost_ns=record.span_cost_ns,
        engine=engine,
    )


def pair_of(payload: Payload) -> NativePair:
    """Reduce what `run_pair` returned."""
    native = EngineRecord.from_plain(payload.get("native"))
    by_phase = {
        phase: [span.duration_ns for span in native.spans if span.phase is phase]
        for phase in (Phase.PREFILL, Phase.DECODE, Phase.SAMPLING)
    }
    sampling_ns = median(by_phase[Phase.SAMPLING])
    ttft_ns = faster_half_mean(by_phase[Phase.PREFILL]) + sampling_ns
    itl_ns = median(by_phase[Phase.DECODE]) + sampling_ns
    n_gen = len(by_phase[Phase.DECODE]) // len(by_phase[Phase.PREFILL])
    return NativePair(
        binding=side_of(payload, EngineRecord.from_plain(payload.get("engine"))),
        native_ns={TTFT: ttft_ns, ITL: itl_ns, TOKENS_PER_S: (ttft_ns + n_gen * itl_ns) / (n_gen + 1)},
        native_sampling_ns=sampling_ns,
        n_gen=n_gen,
    )


def is_overhead(case: Case) -> bool:
    """Whether a case is what the binding adds to the native driver."""
    return case.case_id.endswith(f"/{OVERHEAD}")


def overhead_of(pairs: Sequence[NativePair], door: Door, whole: str, *, alpha: float = _SHOWN_ERROR) -> PairedChange:
    """Return the binding's time over the native driver's, over pairs; ValueError where there are none."""
    old_ns = [round(each.native_ns[whole]) for each in pairs]
    return compare_pairs(old_ns, [each.binding.samples_ns[f"{door.value}/{whole}"] for each in pairs], alpha=alpha)


def explained_ratio(pairs: Sequence[NativePair], door: Door, whole: str) -> float:
    """Return what the spans say that the binding takes, over the native driver: all parts but the engine's own."""
    extra = ((_own_ns(each, door, whole) - each.native_sampling_ns) / each.native_ns[whole] for each in pairs)
    return 1.0 + median(extra)


def _own_ns(pair: NativePair, door: Door, whole: str) -> float:
    if whole == TOKENS_PER_S:
        return (_own_ns(pair, door, TTFT) + pair.n_gen * _own_ns(pair, door, ITL)) / (pair.n_gen + 1)
    own = (part for part in Part if part is not Part.DECODE)
    return sum(pair.binding.samples_ns.get(f"{door.value}/{whole}/{part.value}", 0) for part in own)


def overhead_judgement(case: Case, pairs: Sequence[NativePair], problems: Sequence[str]) -> Judgement:
    """Judge what a request takes longer: PASS where the spans explain it, SLOW where the engine itself is slower there.

    Which the bounds of the ratio say, those of SLOW at the error of a run's question; INCONCLUSIVE between the two.
    """
    door = Door((case.role or "").partition("/")[0])
    if problems or len(pairs) < LEAST_PAIRS:
        why = problems[0] if problems else f"{len(pairs)} pairs, and {LEAST_PAIRS} are needed"
        return told_judgement(case.case_id, case.kind, Outcome.INVALID, why)
    if any(f"{door.value}/{TOKENS_PER_S}" not in each.binding.samples_ns for each in pairs):
        return told_judgement(case.case_id, case.kind, Outcome.INVALID, "the model ended its text after one token")
    ratio, explained = overhead_of(pairs, door, TOKENS_PER_S), explained_ratio(pairs, door, TOKENS_PER_S)
    limit = explained + UNEXPLAINED_RATIO
    surely = overhead_of(pairs, door, TOKENS_PER_S, alpha=_SLOW_ERROR)
    outcome = Outcome.SLOW if surely.lower_ratio > limit else Outcome.INCONCLUSIVE
    outcome = Outcome.PASS if ratio.upper_ratio <= limit else outcome
    measured, lower, upper, told = (
        f"{(each - 1.0) * 100.0:+.1f} %"
        for each in (ratio.estimate_ratio, ratio.lower_ratio, ratio.upper_ratio, explained)
    )
    text = (
        f"a request takes {measured} over the native driver ({lower} to {upper}, {ratio.n_pairs} pairs); "
        f"its spans explain {told}, and {UNEXPLAINED_RATIO * 100.0:g} % more passes"
    )
    return told_judgement(case.case_id, case.kind, outcome, text, ratio.estimate_ratio)
