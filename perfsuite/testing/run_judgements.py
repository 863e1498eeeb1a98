"""The verdicts of a made-up run: samples by chance, outcomes by plan."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from statistics import median

from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.testing.run_cases import PlannedCase, operator_id, phase_id
from perfsuite.units import format_change, format_ns

#: What a slow SWIGLU makes slower, the phase that is told first at the head; new over old.
CHOSEN_CASES = {
    phase_id("prefill"): 1.158,
    operator_id("prefill", "ffn_swiglu"): 20.0,
    phase_id("end_to_end"): 1.172,
    phase_id("decode"): 1.215,
    operator_id("decode", "ffn_swiglu"): 22.0,
}

#: By the place of a case among those that did not regress, modulo 43; what is not here passes.
_OUTCOMES = {
    12: Outcome.IMPROVED,
    14: Outcome.INCONCLUSIVE,
    16: Outcome.NEW,
    19: Outcome.INVALID,
    23: Outcome.INCOMPARABLE,
    29: Outcome.SLOW,
    33: Outcome.INCONCLUSIVE,
    35: Outcome.NEW,
    37: Outcome.IMPOSSIBLE,
    41: Outcome.IMPROVED,
}

_FURTHER_RATIO = 1.08
_N_REPLICATES = 10
_NOISE_RATIO, _SESSION_RATIO = 0.015, 0.003


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What all cases of a made-up run share."""

    seed: int
    #: New over old of `CHOSEN_CASES` beside what their outcome says: the stored baseline has it too.
    change_ratio: float
    has_pairs: bool


def planned_outcome(place: int) -> Outcome:
    """Return the outcome of the case at this place among those that did not regress."""
    return _OUTCOMES.get(place % 43, Outcome.PASS)


def synthetic_judgement(case: PlannedCase, outcome: Outcome, circumstances: Circumstances) -> Judgement:
    """Measure a case by chance, and judge it as planned."""
    chance = random.Random(f"{circumstances.seed}/{case.case_id}")
    if case.base_ns is None:
        return _untimed(case, outcome, chance)
    ratio = _ratio(case, outcome, chance)
    drift = circumstances.change_ratio if case.case_id in CHOSEN_CASES else 1.0
    old_ns = case.base_ns * drift * chance.gauss(1.0, _SESSION_RATIO)
    samples = _samples(old_ns * ratio, chance)
    if outcome is Outcome.INVALID:
        return _timed(case, outcome, samples[:2], None, "only 2 valid replicates, 3 are needed")
    if outcome is Outcome.NEW:
        return _timed(case, outcome, samples, None, "no baseline yet; record one with --baseline=record")
    if outcome is Outcome.INCOMPARABLE:
        return _timed(case, outcome, samples, None, "the baseline was recorded with threads 4, now 2")
    return _compared(case, outcome, samples, _samples(old_ns, chance), circumstances.has_pairs and case.has_pairs)


def _ratio(case: PlannedCase, outcome: Outcome, chance: random.Random) -> float:
    if outcome is Outcome.REGRESSED:
        return CHOSEN_CASES.get(case.case_id, _FURTHER_RATIO)
    return chance.uniform(0.8, 0.92) if outcome is Outcome.IMPROVED else 1.0


def _samples(centre_ns: float, chance: random.Random) -> tuple[int, ...]:
    return tuple(max(1, round(centre_ns * chance.lognormvariate(0.0, _NOISE_RATIO))) for _ in range(_N_REPLICATES))


def _compared(
    case: PlannedCase, outcome: Outcome, samples: tuple[int, ...], old: tuple[int, ...], in_pairs: bool
) -> Judgement:
    ratio = median(new / before for new, before in zip(samples, old, strict=True))
    half_width = 0.12 if outcome is Outcome.INCONCLUSIVE else 0.012
    low, high = ratio * (1.0 - half_width), ratio * (1.0 + half_width)
    margin_ratio = 0.02 if case.kind == "phase" else 0.05
    reason = f"{format_change(ratio)} ({format_change(low)} to {format_change(high)}), margin {margin_ratio * 100:g} %"
    if outcome is Outcome.INCONCLUSIVE:
        reason += "; a change of +12.6 % could have been seen, about 24 more pairs would decide"
    judged = replace(
        _timed(case, outcome, samples, median(old), reason),
        change_ratio=ratio,
        lower_ratio=low,
        upper_ratio=high,
        margin_ratio=margin_ratio,
        resolution_ratio=margin_ratio,
    )
    if not in_pairs:
        return judged
    is_open = outcome is Outcome.INCONCLUSIVE
    return replace(
        judged,
        baseline_samples_ns=old,
        n_pairs=_N_REPLICATES,
        n_more_pairs=24 if is_open else None,
        smallest_effect_ratio=1.126 if is_open else 1.03,
    )


def _timed(
    case: PlannedCase, outcome: Outcome, samples: tuple[int, ...], baseline_ns: float | None, reason: str
) -> Judgement:
    """Return a judgement with a forecast about the usual time; what is slow or impossible breaks its bound."""
    base_ns = case.base_ns or 0
    measured_ns = round(median(samples))
    floor_ns, limit_ns = base_ns // 10, base_ns * 26
    if outcome is Outcome.SLOW:
        limit_ns = round(measured_ns / 1.3)
        reason = f"{format_ns(measured_ns)} is more than the {format_ns(limit_ns)} that the forecast allows"
    if outcome is Outcome.IMPOSSIBLE:
        floor_ns = round(measured_ns * 1.4)
        reason = f"{format_ns(measured_ns)} is below the floor of {format_ns(floor_ns)}: measured wrongly"
    has_interval = case.kind in ("phase", "operator")
    expected_ns = max(floor_ns, round(min(base_ns * 1.05, limit_ns)))
    return Judgement(
        case_id=case.case_id,
        kind=case.kind,
        samples_ns=samples,
        measured_ns=measured_ns,
        floor_ns=None if case.case_id.endswith("/rest") else floor_ns,
        expected_ns=expected_ns,
        limit_ns=limit_ns if has_interval or outcome is Outcome.SLOW else None,
        baseline_ns=None if baseline_ns is None else round(baseline_ns),
        change_ratio=None,
        outcome=outcome,
        reason=reason,
        lower_ns=round(expected_ns * 0.8) if has_interval else None,
        upper_ns=round(expected_ns * 1.3) if has_interval else None,
    )


def _untimed(case: PlannedCase, outcome: Outcome, chance: random.Random) -> Judgement:
    """Return what a case without times tells: passed, or not to be decided."""
    told = outcome if outcome is Outcome.INCONCLUSIVE else Outcome.PASS
    ratio = round(chance.uniform(1.0, 1.05), 4)
    if case.kind == "overhead":
        return told_judgement(case.case_id, case.kind, told, f"{format_change(ratio)} with the recorder", ratio)
    return told_judgement(case.case_id, case.kind, told, f"busiest of 2 threads over their mean {ratio:.2f}")
