"""Joins the three oracles of a case: physics, the forecast, and the stored baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median

from perfsuite.expectation.forecast import Expectation
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Finding, Outcome, foremost
from perfsuite.records.samples import CaseSamples
from perfsuite.units import format_change, format_ns
from perfsuite.verdict.prediction import basis_text, compare_sessions
from perfsuite.verdict.significance import Change

#: Fewer samples than this say nothing about spread.
MIN_SAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineMatch:
    """What the store holds for a case: comparable samples, or why there are none."""

    #: Samples by session, ns, the drift of a sentinel divided out.
    sessions_ns: tuple[tuple[float, ...], ...] = ()
    #: That drift in words; empty where there is none worth telling.
    correction: str = ""
    #: How the nearest stored fingerprint differs; empty when one matches or none is stored.
    differences: tuple[str, ...] = ()
    #: What is missing where there are neither samples nor differences.
    absence: str = "no baseline yet"

    @property
    def reference_ns(self) -> int | None:
        """The median of the sessions' medians."""
        return round(median(median(samples) for samples in self.sessions_ns)) if self.sessions_ns else None


def judge(
    samples: CaseSamples,
    *,
    kind: str,
    expectation: Expectation,
    baseline: BaselineMatch,
    margin_ratio: float,
    session_spread_ratio: float,
) -> Judgement:
    """Judge one case; where several outcomes hold, the first in the order of `Outcome` is given."""
    measured_ns = round(median(samples.samples_ns)) if samples.samples_ns else None
    change = None
    if samples.samples_ns and baseline.sessions_ns and min(samples.samples_ns) > 0:
        change = compare_sessions(baseline.sessions_ns, samples.samples_ns, default_spread_ratio=session_spread_ratio)
    findings = [
        *_validity(samples),
        *_physics(measured_ns, expectation),
        *_history(change, baseline, margin_ratio, session_spread_ratio),
    ]
    finding = foremost(findings)
    return Judgement(
        case_id=samples.case_id,
        kind=kind,
        samples_ns=samples.samples_ns,
        measured_ns=measured_ns,
        floor_ns=expectation.floor_ns,
        expected_ns=expectation.expected_ns,
        limit_ns=expectation.limit_ns,
        lower_ns=expectation.lower_ns,
        upper_ns=expectation.upper_ns,
        baseline_ns=baseline.reference_ns,
        change_ratio=change.estimate_ratio if change else None,
        outcome=finding.outcome,
        reason=finding.reason,
        lower_ratio=_bound(change.lower_ratio) if change else None,
        upper_ratio=_bound(change.upper_ratio) if change else None,
        margin_ratio=margin_ratio if change else None,
    )


def _bound(ratio: float) -> float | None:
    """Return a bound that tells something: None where it is 0 or infinite."""
    return ratio if 0.0 < ratio < math.inf else None


def _validity(samples: CaseSamples) -> Iterator[Finding]:
    for problem in samples.problems:
        yield Finding(outcome=Outcome.INVALID, reason=problem)
    if not samples.samples_ns:
        yield Finding(outcome=Outcome.INVALID, reason="no replicate measured this case")
    elif min(samples.samples_ns) <= 0:
        yield Finding(outcome=Outcome.INVALID, reason=f"a sample is {min(samples.samples_ns)} ns, expected more than 0")
    elif len(samples.samples_ns) < MIN_SAMPLES:
        seen = len(samples.samples_ns)
        yield Finding(outcome=Outcome.INVALID, reason=f"only {seen} valid replicates, {MIN_SAMPLES} are needed")


def _physics(measured_ns: int | None, expectation: Expectation) -> Iterator[Finding]:
    if measured_ns is None:
        return
    if expectation.floor_ns is not None and measured_ns < expectation.floor_ns:
        reason = f"{format_ns(measured_ns)} is below the floor of {format_ns(expectation.floor_ns)}: measured wrongly"
        yield Finding(outcome=Outcome.IMPOSSIBLE, reason=reason)
    if expectation.limit_ns is not None and measured_ns > expectation.limit_ns:
        bound = "" if expectation.upper_ns is None else f", at most {format_ns(expectation.upper_ns)}"
        reason = (
            f"slower than expected: {format_ns(measured_ns)} is beyond the limit of {format_ns(expectation.limit_ns)} "
            f"(expected {format_ns(expectation.expected_ns)}{bound})"
        )
        yield Finding(outcome=Outcome.SLOW, reason=reason)


def _history(
    change: Change | None, baseline: BaselineMatch, margin_ratio: float, session_spread_ratio: float
) -> Iterator[Finding]:
    if baseline.differences:
        reason = f"the baseline was recorded with {'; '.join(baseline.differences)}"
        yield Finding(outcome=Outcome.INCOMPARABLE, reason=reason)
    elif change is None:
        yield Finding(outcome=Outcome.NEW, reason=f"{baseline.absence}; record one with --baseline=record")
    else:
        finding = _verdict(change, margin_ratio)
        basis = (basis_text(baseline.sessions_ns, session_spread_ratio), baseline.correction)
        yield replace(finding, reason="; ".join((finding.reason, *filter(None, basis))))


def _verdict(change: Change, margin_ratio: float) -> Finding:
    """Three answers: slower for sure and by more than the margin; not slower by the margin for sure; neither."""
    seen = (
        f"{format_change(change.estimate_ratio)} "
        f"({format_change(change.lower_ratio)} to {format_change(change.upper_ratio)})"
    )
    margin = f"margin {margin_ratio * 100:g} %"
    if change.lower_ratio > 1.0 and change.estimate_ratio > 1.0 + margin_ratio:
        return Finding(outcome=Outcome.REGRESSED, reason=f"{seen}, {margin}")
    if change.upper_ratio < 1.0 and change.estimate_ratio < 1.0 / (1.0 + margin_ratio):
        return Finding(outcome=Outcome.IMPROVED, reason=f"{seen}, {margin}")
    if change.upper_ratio < 1.0 + margin_ratio:
        return Finding(outcome=Outcome.PASS, reason=f"{seen}, {margin}")
    could_see = format_change(1.0 + (change.upper_ratio - change.estimate_ratio))
    return Finding(
        outcome=Outcome.INCONCLUSIVE, reason=f"{seen}, {margin}; a change of {could_see} could have been seen"
    )
