"""Joins the three oracles of a case: physics, the forecast, and the stored baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from perfsuite.records.case import Expectation
from perfsuite.records.outcome import CaseSamples, Finding, Judgement, Outcome, foremost
from perfsuite.units import format_change, format_limit, format_ns, format_ratio
from perfsuite.verdict.allowance import Allowance, Comparison, resolution_ratio
from perfsuite.verdict.significance import Change, basis_text, compare_sessions

MIN_SAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineMatch:
    """What the store holds for a case: comparable samples, or why there are none."""

    #: Samples by session, ns, the drift of a sentinel divided out.
    sessions_ns: tuple[tuple[float, ...], ...] = ()
    #: That drift in words; empty where there is none worth reporting.
    correction: str = ""
    #: Why what is stored cannot be compared with: the device has changed since; empty where it can.
    problem: str = ""
    #: From which engine to which the case goes; empty where they are the same, or one is not known.
    engines: str = ""
    #: How the nearest stored fingerprint differs; empty when one matches or none is stored.
    differences: tuple[str, ...] = ()
    #: What is missing where there are neither samples nor differences.
    absence: str = "no baseline yet"

    @property
    def reference_ns(self) -> int | None:
        return round(median(median(samples) for samples in self.sessions_ns)) if self.sessions_ns else None


def judge(
    samples: CaseSamples, *, kind: str, expectation: Expectation, baseline: BaselineMatch, allowed: Allowance
) -> Judgement:
    """Judge one case; where several outcomes hold, the first in the order of `Outcome` is given."""
    measured_ns = round(median(samples.samples_ns)) if samples.samples_ns else None
    compared = _compared(samples, baseline, allowed)
    problems = (*samples.problems, *filter(None, [baseline.problem]))
    samples = replace(samples, problems=problems)
    findings = [*_validity(samples), *physics(measured_ns, expectation), *_history(compared, baseline)]
    finding = foremost(findings)
    change = compared.change if compared else None
    passes_by_share = finding.outcome is Outcome.PASS and compared is not None and compared.passes_by_share
    return Judgement(
        case_id=samples.case_id,
        kind=kind,
        samples_ns=samples.samples_ns,
        measured_ns=measured_ns,
        **asdict(expectation),
        baseline_ns=baseline.reference_ns,
        **asdict(finding),
        **change_fields(change),
        margin_ratio=compared.margin_ratio if compared else None,
        resolution_ratio=compared.stated_ratio if compared else None,
        step_share_ratio=allowed.share.share_ratio if allowed.share and passes_by_share else None,
    )


def _compared(samples: CaseSamples, baseline: BaselineMatch, allowed: Allowance) -> Comparison | None:
    """Compare with the stored sessions; None without any, or without times that could be compared.

    What a sample may be off by cannot be resolved, however alike the samples are.
    """
    samples_ns = samples.samples_ns
    if not baseline.sessions_ns or not samples_ns or min(samples_ns) <= 0:
        return None
    change = compare_sessions(baseline.sessions_ns, samples_ns, default_spread_ratio=allowed.session_spread_ratio)
    return Comparison(
        change=change,
        old_ns=median(samples_ns) / change.estimate_ratio,
        resolution_ratio=max(resolution_ratio(change, n_sessions=len(baseline.sessions_ns)), samples.error_ratio),
        allowed=allowed,
    )


def change_fields(change: Change | None) -> dict[str, Any]:
    """Return a change by the fields of a judgement; a bound that is 0 or infinite is None."""
    if change is None:
        return {"change_ratio": None}
    bounds = {"lower_ratio": change.lower_ratio, "upper_ratio": change.upper_ratio}
    known = {name: ratio if 0.0 < ratio < math.inf else None for name, ratio in bounds.items()}
    return {"change_ratio": change.estimate_ratio, **known}


def _validity(samples: CaseSamples) -> Iterator[Finding]:
    reasons, samples_ns = [*samples.problems], samples.samples_ns
    if not samples_ns:
        reasons.append("no replicate measured this case")
    elif min(samples_ns) <= 0:
        reasons.append(f"a sample is {min(samples_ns)} ns, expected more than 0")
    elif len(samples_ns) < MIN_SAMPLES:
        reasons.append(f"only {len(samples_ns)} valid replicates, {MIN_SAMPLES} are needed")
    yield from (Finding(outcome=Outcome.INVALID, reason=reason) for reason in reasons)


def physics(measured_ns: int | None, expectation: Expectation) -> Iterator[Finding]:
    """Yield what physics and the forecast say of a time: faster than is possible, or slower than the limit."""
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


def _history(compared: Comparison | None, baseline: BaselineMatch) -> Iterator[Finding]:
    if baseline.differences:
        reason = f"the baseline was recorded with {'; '.join(baseline.differences)}"
        yield Finding(outcome=Outcome.INCOMPARABLE, reason=reason)
    elif compared is None:
        yield Finding(outcome=Outcome.NEW, reason=f"{baseline.absence}; record one with --baseline=record")
    else:
        finding = _verdict(compared)
        spread = basis_text(baseline.sessions_ns, compared.allowed.session_spread_ratio)
        basis = (spread, baseline.correction, baseline.engines)
        yield replace(finding, reason="; ".join((finding.reason, *filter(None, basis))))


def _verdict(compared: Comparison) -> Finding:
    change = compared.change
    estimate, lower, upper = map(format_change, (change.estimate_ratio, change.lower_ratio, change.upper_ratio))
    seen = f"{estimate} ({lower} to {upper})"
    against = f"{seen}, {_margin_text(compared)}"
    outcome = change.outcome(compared.margin_ratio, compared.passed_ratio)
    if outcome is Outcome.PASS:
        return Finding(outcome=outcome, reason=f"{seen}, PASS at {format_limit(compared.passed_ratio)}")
    if outcome is not Outcome.INCONCLUSIVE:
        return Finding(outcome=outcome, reason=against)
    if compared.passes_by_share:
        return Finding(outcome=Outcome.PASS, reason=f"{seen}, {_share_text(compared)}")
    return Finding(outcome=outcome, reason=f"{against}; {_resolution_text(compared)}")


def _margin_text(compared: Comparison) -> str:
    share, margin = compared.allowed.share, f"margin {compared.margin_ratio * 100:.3g} %"
    if share is None or compared.share_ratio <= compared.allowed.margin_ratio:
        return margin
    return f"{margin}, which is {format_limit(share.share_ratio)} of {share.step.value}"


def _share_text(compared: Comparison) -> str:
    share = compared.allowed.share
    assert share is not None
    of_step = (compared.change.estimate_ratio - 1.0) * compared.old_ns / share.step_ns
    return f"{of_step * 100:.2g} % of {share.step.value}: passes up to {format_limit(share.share_ratio)} of it"


def _resolution_text(compared: Comparison) -> str:
    detectable = f"the smallest detectable change is {format_ratio(1.0 + compared.stated_ratio)}"
    most = compared.allowed.most_resolution_ratio
    return f"{detectable}, --perf-resolution is {most * 100:g} %" if compared.resolution_ratio > most else detectable
