"""What is said of a case that pairs have judged."""

from __future__ import annotations

import math

from perfsuite.records.outcome import Outcome
from perfsuite.units import format_change, format_limit
from perfsuite.verdict.sequential import PairedVerdict
from perfsuite.verdict.signed_rank import PairedChange


def paired_reason(verdict: PairedVerdict, asked_margin_ratio: float) -> str:
    """Say in one sentence what was seen and, where it decides nothing, what would.

    Where the margin that counted is more than the one that was asked for, it is a share of the case's step.
    """
    seen = f"{_interval(verdict.change)}, {_margin(verdict, asked_margin_ratio)}"
    return "; ".join((seen, *filter(None, (_lost_flag(verdict), _resolution(verdict), _what_would_decide(verdict)))))


def _margin(verdict: PairedVerdict, asked_margin_ratio: float) -> str:
    if verdict.margin_ratio <= asked_margin_ratio:
        return f"margin {asked_margin_ratio * 100:g} %"
    return f"margin {format_limit(verdict.margin_ratio)}, for it is a small part of its step"


def _resolution(verdict: PairedVerdict) -> str:
    resolution = verdict.resolution_ratio
    if resolution is None or resolution <= verdict.margin_ratio:
        return ""
    return f"passes at {resolution * 100:.2g} %"


def _interval(change: PairedChange) -> str:
    estimate = format_change(change.estimate_ratio)
    if math.isinf(change.upper_ratio):
        return f"{estimate} (too few pairs for an interval: {change.n_pairs})"
    return f"{estimate} ({format_change(change.lower_ratio)} to {format_change(change.upper_ratio)})"


def _lost_flag(verdict: PairedVerdict) -> str:
    is_lost = verdict.is_flagged and verdict.outcome in (Outcome.PASS, Outcome.INCONCLUSIVE)
    return "flagged by the screen and not confirmed" if is_lost else ""


def _what_would_decide(verdict: PairedVerdict) -> str:
    if verdict.outcome is not Outcome.INCONCLUSIVE or verdict.smallest_effect_ratio is None:
        return ""
    could_see = f"a change of {format_change(verdict.smallest_effect_ratio)} could have been seen"
    if verdict.n_more_pairs is None:
        return could_see
    noun = "pair" if verdict.n_more_pairs == 1 else "pairs"
    return f"{could_see}, about {verdict.n_more_pairs} more {noun} would decide"
