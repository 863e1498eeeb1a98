"""The verdict on a case of overhead: whether following a run costs it less than was promised."""

from __future__ import annotations

from collections.abc import Mapping

from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.verdict.paired import PairedRatio

#: The kind of the cases, and the first part of their ids.
OVERHEAD = "overhead"

#: The most that a comparison may add to the time of a prefill and of a decode; the end to end has the larger of the
#: two. What the layer adds is the suite's own promise; with the runtime's profiling it is lm-Meter's worst, 2.58 % and
#: 0.99 % (section on overhead, Pixel 8 Pro, powersave).
LIMITS_RATIO: Mapping[str, tuple[float, float]] = {
    "layer": (0.005, 0.009),
    "profiling": (0.0258, 0.0099),
    "opencl": (0.0258, 0.0099),
    "opencl+live": (0.0258, 0.02),
    "live": (0.01, 0.02),
    "callback+live": (0.01, 0.03),
}


def case_name(comparison: str, phase: Phase, governor: str | None = None) -> str:
    """Return the id of a comparison in a phase, under a governor where it was set for it."""
    return f"{OVERHEAD}/{comparison}{f'@{governor}' if governor else ''}/{phase.value}"


def parts_of(case_id: str) -> tuple[str, Phase, str | None]:
    """Return the comparison, the phase and the governor that an id names."""
    _, subject, phase = case_id.split("/")
    comparison, _, governor = subject.partition("@")
    return comparison, Phase(phase), governor or None


def judge_overhead(case_id: str, ratio: PairedRatio | None, *, reason: str) -> Judgement:
    """Judge one case; without a ratio, `reason` says why there is none.

    PASS where the upper bound of the median (95 %, one-sided) meets the limit, SLOW where the lower bound is beyond it,
    INCONCLUSIVE between the two, and INVALID where nothing was measured.
    """
    if ratio is None:
        return told_judgement(case_id, OVERHEAD, Outcome.INVALID, reason)
    limit_ratio = _limit_ratio(*parts_of(case_id)[:2])
    text = (
        f"{_percent(ratio.median_ratio - 1.0)} (95 % bounds {_percent(ratio.lower_ratio - 1.0)} to "
        f"{_percent(ratio.upper_ratio - 1.0)}, {ratio.n_pairs} pairs), limit {_percent(limit_ratio)}"
    )
    is_slow = ratio.lower_ratio > 1.0 + limit_ratio
    outcome = Outcome.SLOW if is_slow else Outcome.INCONCLUSIVE
    outcome = Outcome.PASS if ratio.upper_ratio <= 1.0 + limit_ratio else outcome
    return told_judgement(case_id, OVERHEAD, outcome, text, ratio.median_ratio)


def _limit_ratio(comparison: str, phase: Phase) -> float:
    prefill, decode = LIMITS_RATIO[comparison]
    return {Phase.PREFILL: prefill, Phase.DECODE: decode}.get(phase, max(prefill, decode))


def _percent(ratio: float) -> str:
    return f"{ratio * 100.0:+.2f} %"
