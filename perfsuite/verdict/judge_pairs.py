"""The judgement of a case from pairs: what they say of it, or why they say nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from perfsuite.expectation.cases import Case
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Finding, Outcome, foremost
from perfsuite.verdict.sequential import PairedVerdict, paired_reason

#: Old and new samples of a case, ns, pair by pair.
Sides = tuple[Sequence[int], Sequence[int]]


def judge_pairs(
    case: Case, sides: Sides, verdict: PairedVerdict | None, *, margin_ratio: float, problems: Sequence[str] = ()
) -> Judgement:
    """Judge one case of a paired comparison; without a verdict only one of the sides has it."""
    old_ns, new_ns = sides
    findings = [Finding(outcome=Outcome.INVALID, reason=problem) for problem in problems]
    if verdict is not None:
        findings.append(Finding(outcome=verdict.outcome, reason=paired_reason(verdict, margin_ratio)))
    elif not problems:
        findings.append(Finding(outcome=Outcome.INCOMPARABLE, reason="the two sides do not both measure it"))
    finding = foremost(findings)
    change = verdict.change if verdict else None
    return Judgement(
        case_id=case.case_id,
        kind=case.kind,
        samples_ns=tuple(new_ns),
        measured_ns=round(median(new_ns)) if new_ns else None,
        floor_ns=None,
        expected_ns=None,
        limit_ns=None,
        baseline_ns=round(median(old_ns)) if old_ns else None,
        change_ratio=change.estimate_ratio if change else None,
        outcome=finding.outcome,
        reason=finding.reason,
        baseline_samples_ns=tuple(old_ns),
        lower_ratio=change.lower_ratio if change and change.lower_ratio > 0 else None,
        upper_ratio=change.upper_ratio if change and not math.isinf(change.upper_ratio) else None,
        margin_ratio=margin_ratio if verdict else None,
        n_pairs=verdict.n_pairs if verdict else None,
        n_more_pairs=verdict.n_more_pairs if verdict else None,
        smallest_effect_ratio=verdict.smallest_effect_ratio if verdict else None,
    )
