"""The judgement of a case from pairs: what they say of it, or why they say nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median

from perfsuite.expectation.cases import Case
from perfsuite.expectation.forecast import Expectation
from perfsuite.records.outcome import Finding, Judgement, Outcome, foremost
from perfsuite.units import format_change, format_count, format_limit
from perfsuite.verdict.compare import change_fields, physics
from perfsuite.verdict.sequential import PairedVerdict
from perfsuite.verdict.signed_rank import PairedChange


def paired_reason(verdict: PairedVerdict, asked_margin_ratio: float) -> str:
    """Say in one sentence what was seen and, where it decides nothing, what would.

    Where the margin that counted is more than the one that was asked for, it is a share of the case's step.
    """
    margin = f"margin {asked_margin_ratio * 100:g} %"
    if verdict.margin_ratio > asked_margin_ratio:
        margin = f"margin {format_limit(verdict.margin_ratio)}, for it is a small part of its step"
    parts = [f"{_interval(verdict.change)}, {margin}"]
    if verdict.is_flagged and verdict.outcome in (Outcome.PASS, Outcome.INCONCLUSIVE):
        parts.append("flagged by the screen and not confirmed")
    if verdict.resolution_ratio is not None and verdict.resolution_ratio > verdict.margin_ratio:
        parts.append(f"passes at {verdict.resolution_ratio * 100:.2g} %")
    return "; ".join((*parts, *_what_would_decide(verdict)))


def _interval(change: PairedChange) -> str:
    estimate = format_change(change.estimate_ratio)
    if math.isinf(change.upper_ratio):
        return f"{estimate} (too few pairs for an interval: {change.n_pairs})"
    return f"{estimate} ({format_change(change.lower_ratio)} to {format_change(change.upper_ratio)})"


def _what_would_decide(verdict: PairedVerdict) -> Iterator[str]:
    if verdict.outcome is Outcome.INCONCLUSIVE and verdict.smallest_effect_ratio is not None:
        detectable = f"the smallest detectable change is {format_change(verdict.smallest_effect_ratio)}"
        n_more = verdict.n_more_pairs
        yield detectable if n_more is None else f"{detectable}, about {format_count(n_more, 'more pair')} would decide"


#: Of a case whose forecast nobody asks for.
NO_EXPECTATION = Expectation()

#: Old and new samples of a case, ns, pair by pair.
Sides = tuple[Sequence[int], Sequence[int]]


def judge_pairs(
    case: Case,
    sides: Sides,
    verdict: PairedVerdict | None,
    *,
    margin_ratio: float,
    problems: Sequence[str] = (),
    expectation: Expectation = NO_EXPECTATION,
    step_share_ratio: float = 0.0,
) -> Judgement:
    """Judge one case of a paired comparison; without a verdict only one of the sides has it.

    A verdict whose margin is more than `margin_ratio` has it from a share of the case's step, `step_share_ratio`.
    """
    old_ns, new_ns = sides
    measured_ns = round(median(new_ns)) if new_ns else None
    findings = [Finding(outcome=Outcome.INVALID, reason=problem) for problem in problems]
    findings += physics(measured_ns, expectation)
    if verdict is not None:
        findings.append(Finding(outcome=verdict.outcome, reason=paired_reason(verdict, margin_ratio)))
    elif not problems:
        findings.append(Finding(outcome=Outcome.INCOMPARABLE, reason="the two sides do not both measure it"))
    finding = foremost(findings)
    ruled_out_ratio = verdict.resolution_ratio if verdict else None
    return Judgement(
        case_id=case.case_id,
        kind=case.kind,
        samples_ns=tuple(new_ns),
        measured_ns=measured_ns,
        **asdict(expectation),
        baseline_ns=round(median(old_ns)) if old_ns else None,
        **asdict(finding),
        **change_fields(verdict.change if verdict else None),
        baseline_samples_ns=tuple(old_ns),
        margin_ratio=verdict.margin_ratio if verdict else None,
        resolution_ratio=None if ruled_out_ratio is None else max(margin_ratio, ruled_out_ratio),
        step_share_ratio=step_share_ratio if _passes_by_share(verdict, margin_ratio) else None,
        n_pairs=verdict.n_pairs if verdict else None,
        n_more_pairs=verdict.n_more_pairs if verdict else None,
        smallest_effect_ratio=verdict.smallest_effect_ratio if verdict else None,
    )


def _passes_by_share(verdict: PairedVerdict | None, margin_ratio: float) -> bool:
    """Whether a case passes as a small part of its step, and would not by its own margin."""
    if verdict is None or verdict.outcome is not Outcome.PASS:
        return False
    return verdict.margin_ratio > margin_ratio and verdict.change.upper_ratio >= 1.0 + margin_ratio
