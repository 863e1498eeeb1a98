"""The verdict on a case that is judged by a trace."""

from __future__ import annotations

from perfsuite.expectation.attention_growth import attended_positions, growth_expectation
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.expectation.decode_linearity import linearity_expectation
from perfsuite.expectation.expert_reuse import reuse_expectation
from perfsuite.expectation.thread_balance import expected_balances
from perfsuite.expectation.trace_cases import (
    ATTENTION_GROWTH,
    BALANCE,
    DECODE_LINEARITY,
    EXPERT_REUSE,
    TRACE,
    n_routed_layers,
)
from perfsuite.experiments.tracing.balance import judge_balance
from perfsuite.experiments.tracing.findings import TraceFindings
from perfsuite.experiments.tracing.growth import judge_growth
from perfsuite.experiments.tracing.linearity import judge_linearity
from perfsuite.experiments.tracing.reuse import judge_reuse
from perfsuite.records.events import Phase
from perfsuite.records.judgement import Judgement, told_judgement
from perfsuite.records.outcome import Finding, Outcome


def judge_trace(
    findings: TraceFindings | None,
    case_id: str,
    *,
    ceilings: Ceilings | None,
    tolerance_ratio: float | None,
    reason: str = "it was not measured",
) -> Judgement:
    """Judge one case of `perfsuite.expectation.trace_cases.trace_cases`; without findings `reason` says why.

    An operator may take `tolerance_ratio` times its forecast; None where the device's profile sets none.
    """
    if findings is None or findings.complaint is not None:
        return told_judgement(case_id, TRACE, Outcome.INVALID, reason if findings is None else f"{findings.complaint}")
    what = case_id.removeprefix(f"{TRACE}/{findings.workload.prefix}/")
    finding = _finding(findings, what, ceilings, tolerance_ratio)
    return told_judgement(case_id, TRACE, finding.outcome, finding.reason)


def _finding(findings: TraceFindings, what: str, ceilings: Ceilings | None, tolerance_ratio: float | None) -> Finding:
    if what.startswith(f"{BALANCE}/"):
        _, phase, role = what.split("/", 2)
        return _balance(findings, Phase(phase), role)
    if what == ATTENTION_GROWTH:
        return _growth(findings, ceilings, tolerance_ratio)
    if what == DECODE_LINEARITY:
        expected = linearity_expectation(findings.workload)
        slope_ns = None if ceilings is None else expected.slope_ns_per_byte(ceilings)
        return judge_linearity(expected, findings.decode_ns, slope_ns, tolerance_ratio)
    if what == EXPERT_REUSE:
        return _reuse(findings)
    return Finding(outcome=Outcome.INVALID, reason="no such case is known")


def _balance(findings: TraceFindings, phase: Phase, role: str) -> Finding:
    expected = expected_balances(findings.workload, phase, findings.n_threads).get(role)
    if expected is None:
        return Finding(outcome=Outcome.INVALID, reason="no rule is known by which threads share this operator")
    return judge_balance(
        findings.balances.get((phase, role)),
        expected,
        has_ends=findings.has_ends,
        least_thread_ns=findings.least_thread_ns,
    )


def _growth(findings: TraceFindings, ceilings: Ceilings | None, tolerance_ratio: float | None) -> Finding:
    workload, n_threads = findings.workload, findings.n_threads
    positions = [attended_positions(workload, n_used, n_threads) for n_used in findings.contexts]
    slope_ns = None if ceilings is None else growth_expectation(workload).slope_ns(ceilings)
    return judge_growth(positions, findings.attention_ns, slope_ns, tolerance_ratio)


def _reuse(findings: TraceFindings) -> Finding:
    moe = findings.workload.weights.architecture.moe
    if moe is None:
        return Finding(outcome=Outcome.INVALID, reason="the architecture has no experts")
    n_layers = n_routed_layers(findings.workload)
    expected = reuse_expectation(moe, n_layers, findings.n_stretch_steps)
    return judge_reuse(findings.layers, expected, n_layers=n_layers)
