"""The judgement of a case from pairs: what they say of it, or why they say nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from statistics import median

from perfsuite.records.case import Case, Expectation
from perfsuite.records.outcome import Finding, Judgement, Outcome, foremost
from perfsuite.units import format_change, format_count, format_limit, format_ns
from perfsuite.verdict.compare import change_fields, physics
from perfsuite.verdict.pairs import PairedChange, PairedVerdict


def paired_reason(verdict: PairedVerdict, asked_margin_ratio: float) -> str:
    """Say in one sentence what was seen in how many pairs and, of an open case, what is ruled out and would decide it.

    Where the margin that counted is more than the one that was asked for, it is a share of the case's step.
    """
    margin = f"margin {asked_margin_ratio * 100:g} %"
    if verdict.margin_ratio > asked_margin_ratio:
        margin = f"margin {format_limit(verdict.margin_ratio)}, for it is a small part of its step"
    pairs = format_count(verdict.n_pairs, "pair")
    if verdict.n_disturbed:
        pairs += f", {verdict.n_disturbed} of them disturbed, all of that taken off"
    parts = [f"{_interval(verdict.change)}, {margin}, {pairs}"]
    return "; ".join((*parts, *_what_would_decide(verdict)))


def _interval(change: PairedChange) -> str:
    estimate = format_change(change.estimate_ratio)
    if math.isfinite(change.error):
        return f"{estimate} ({format_change(change.lower_ratio)} to {format_change(change.upper_ratio)})"
    return f"{estimate} (all pairs are alike, so nothing says how much they scatter)"


def _what_would_decide(verdict: PairedVerdict) -> Iterator[str]:
    if verdict.outcome is Outcome.SUSPECT:
        yield "looks slower, not proven"
    elif verdict.outcome is Outcome.INCONCLUSIVE and math.isfinite(verdict.change.error):
        yield f"within {format_change(verdict.change.upper_ratio)}"
    if verdict.n_more_pairs is not None:
        yield f"about {format_count(verdict.n_more_pairs, 'more pair')} would decide"


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
    old_floor_ns: int | None = None,
    step_share_ratio: float = 0.0,
) -> Judgement:
    """Judge one case of a paired comparison; without a verdict the sides do not both have it.

    `old_floor_ns` is the least that physics allows the old side. A verdict whose margin is more than `margin_ratio` has
    it from a share of the case's step, `step_share_ratio`.
    """
    old_ns, new_ns = sides
    measured_ns, baseline_ns = (round(median(side_ns)) if side_ns else None for side_ns in (new_ns, old_ns))
    findings = [Finding(outcome=Outcome.INVALID, reason=problem) for problem in problems]
    findings += physics(measured_ns, expectation)
    of_old = physics(baseline_ns, Expectation(floor_ns=old_floor_ns))
    findings += [replace(each, reason=f"the old side: {each.reason}") for each in of_old]
    if verdict is not None:
        findings.append(Finding(outcome=verdict.outcome, reason=paired_reason(verdict, margin_ratio)))
    elif not problems:
        findings.append(Finding(outcome=Outcome.INCOMPARABLE, reason=_lone_reason(baseline_ns, measured_ns)))
    finding = foremost(findings)
    return Judgement(
        case_id=case.case_id,
        kind=case.kind,
        samples_ns=tuple(new_ns),
        measured_ns=measured_ns,
        **asdict(expectation),
        baseline_ns=baseline_ns,
        **asdict(finding),
        **change_fields(verdict.change if verdict else None),
        baseline_samples_ns=tuple(old_ns),
        margin_ratio=verdict.margin_ratio if verdict else None,
        resolution_ratio=_ruled_out_ratio(verdict, margin_ratio),
        step_share_ratio=step_share_ratio if _passes_by_share(verdict, margin_ratio) else None,
        n_pairs=verdict.n_pairs if verdict else max(len(old_ns), len(new_ns)) or None,
        n_more_pairs=verdict.n_more_pairs if verdict else None,
        smallest_effect_ratio=verdict.smallest_effect_ratio if verdict else None,
    )


def _lone_reason(old_ns: int | None, new_ns: int | None) -> str:
    if (old_ns is None) == (new_ns is None):
        return "too few pairs have it on both sides"
    return f"only the {'old' if new_ns is None else 'new'} side computes it: {format_ns(old_ns or new_ns)}"


def _ruled_out_ratio(verdict: PairedVerdict | None, margin_ratio: float) -> float | None:
    """Return the slowdown that a PASS rules out: the margin, or by a share of the step what its pairs do."""
    if verdict is None or verdict.outcome is not Outcome.PASS:
        return None
    return max(margin_ratio, verdict.change.upper_ratio - 1.0)


def _passes_by_share(verdict: PairedVerdict | None, margin_ratio: float) -> bool:
    """Whether a case passes as a small part of its step, and would not by its own margin."""
    if verdict is None or verdict.outcome is not Outcome.PASS:
        return False
    return verdict.margin_ratio > margin_ratio and verdict.change.upper_ratio >= 1.0 + margin_ratio
