"""The verdict on a kept shape: whether it still fails, fails within what was accepted, or no longer does."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.experiments.shapes.judge import ShapeJudge
from perfsuite.experiments.shapes.kept_files import KeptShape, bench_of
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty, ShapeVerdict
from perfsuite.records.fingerprint import differences
from perfsuite.records.outcome import Outcome
from perfsuite.units import format_change

#: The properties that are judged against the margin.
_BY_MARGIN = (ShapeProperty.PADDING, ShapeProperty.GROWTH)

#: The properties of which a reviewer may accept a ratio.
_ACCEPTABLE = (*_BY_MARGIN, ShapeProperty.CALIBRATED)


def judge_kept(judge: ShapeJudge, kept: KeptShape) -> ShapeVerdict:
    """Judge a kept shape by its property, and by what a reviewer accepted.

    A shape that fails stays what it is where nothing was accepted; it is PASS within ``accepted_ratio`` and the margin,
    by its lower bound. What was accepted on another bench is INCOMPARABLE here. A wrong output and a crash are never
    accepted. A shape that passes is IMPROVED where that is sure, else INCONCLUSIVE; where it was found on another bench
    it may still fail there, and is PASS.
    """
    verdict = judge.judge(kept.property, kept.case)
    if verdict.outcome is Outcome.INVALID:
        return verdict
    elsewhere = "; ".join(differences(bench_of(kept.example.fingerprint), bench_of(judge.fingerprint)))
    outcome, what = (_failing if verdict.outcome.fails else _passing)(verdict, kept, judge.margin_ratio, elsewhere)
    return replace(verdict, outcome=outcome, reason=f"{what}; {verdict.reason}")


def _failing(verdict: ShapeVerdict, kept: KeptShape, margin_ratio: float, elsewhere: str) -> tuple[Outcome, str]:
    accepted_ratio = kept.example.accepted_ratio
    if accepted_ratio is None or verdict.lower_ratio is None or kept.property not in _ACCEPTABLE:
        return verdict.outcome, "still fails"
    accepted = f"accepted were {format_change(accepted_ratio)}"
    if not is_accepted(verdict, accepted_ratio, margin_ratio):
        return verdict.outcome, f"worse than accepted: {accepted}"
    if elsewhere:
        return Outcome.INCOMPARABLE, f"{accepted} with {elsewhere}"
    return Outcome.PASS, f"within what was accepted: {accepted}"


def is_accepted(verdict: ShapeVerdict, accepted_ratio: float, margin_ratio: float) -> bool:
    """Say whether what fails is, by its lower bound, no worse than what was accepted and the margin.

    A wrong output, a crash, and what is faster than the ceilings allow are never accepted.
    """
    if verdict.property not in _ACCEPTABLE or verdict.outcome is WRONG or verdict.lower_ratio is None:
        return False
    return verdict.lower_ratio <= accepted_ratio * (1.0 + margin_ratio)


def _passing(verdict: ShapeVerdict, kept: KeptShape, margin_ratio: float, elsewhere: str) -> tuple[Outcome, str]:
    if elsewhere:
        return Outcome.PASS, f"does not fail here; it was found with {elsewhere}"
    is_open = verdict.upper_ratio is None or verdict.upper_ratio >= 1.0 + margin_ratio
    if kept.property in _BY_MARGIN and is_open:
        return Outcome.INCONCLUSIVE, "not seen to fail, and not ruled out"
    return Outcome.IMPROVED, f"no longer fails; remove it from {kept.path}"
