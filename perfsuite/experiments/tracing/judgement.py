"""The verdict on a case that is judged by a trace.

The verdict on the experts of a run: whether the choices are ones that a router can make, and how it reuses them.

What must hold of any router is judged hard: a token's experts are different ones, as many as the architecture says, and
every layer that routes does so in every step. Whatever breaks this was read wrongly. How far apart the uses of an
expert lie is a property of the router and no fault: a router that prefers some experts stays below the bounds of one
that prefers none, which is reported. One that is above them spreads its tokens more evenly than chance does; that is
left undecided, for then nothing was shown of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfsuite.expectation.thread_rules import BalanceExpectation
from perfsuite.expectation.trace_cases import (
    ATTENTION_GROWTH,
    BALANCE,
    DECODE_LINEARITY,
    EXPERT_REUSE,
    LEAST_RUNS,
    TRACE,
    LinearityExpectation,
    ProductSize,
    ReuseExpectation,
    attended_positions,
    expected_balances,
    growth_expectation,
    linearity_expectation,
    n_routed_layers,
    reuse_expectation,
    routed_experts,
)
from perfsuite.experiments.tracing.findings import TraceFindings
from perfsuite.experiments.tracing.growth import judge_growth
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Finding, Judgement, Outcome, foremost, told_judgement
from perfsuite.trace.experts.reuse import LayerReuse
from perfsuite.trace.statistics.operator_statistics import LineFit, fit_line
from perfsuite.trace.statistics.thread_balance import RoleBalance
from perfsuite.units import format_count, format_ns

#: The least of the variance that the line must explain.
LEAST_R_SQUARED = 0.95

#: How far above the line a role may be.
MOST_DEVIATION_RATIO = 0.5

#: Roles that are told by name.
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLine:
    """The products with weights of one type."""

    type: str
    fit: LineFit
    #: How far each role is from the line, the furthest above first.
    deviations: tuple[tuple[str, float], ...]


def measured_lines(
    expected: LinearityExpectation, decode_ns: Mapping[tuple[str, int | None], float]
) -> tuple[MeasuredLine, ...]:
    """Fit the roles of each type of weights that has enough sizes, medians over the layers, by relative distances."""
    return tuple(found for kind in expected.types for found in _line(kind, expected.products, decode_ns))


def judge_linearity(
    expected: LinearityExpectation,
    decode_ns: Mapping[tuple[str, int | None], float],
    expected_ns_per_byte: float | None,
    tolerance_ratio: float | None,
) -> Finding:
    """Judge the products of a run.

    SLOW where the line explains less than `LEAST_R_SQUARED`, where a role is more than `MOST_DEVIATION_RATIO` above
    it, or where a byte costs more than the bandwidth allows for times the tolerance. INCONCLUSIVE of a line where
    nothing is known of what a byte should cost. INVALID where no type of weights has enough sizes among the products
    that were recorded. Times are those of a step of decoding, by role and layer.
    """
    lines = measured_lines(expected, decode_ns)
    if not lines:
        return Finding(outcome=Outcome.INVALID, reason="too few products of decoding were recorded for a line")
    limit_ns_per_byte = (
        None if expected_ns_per_byte is None or tolerance_ratio is None else expected_ns_per_byte * tolerance_ratio
    )
    findings = [_judged(line, expected_ns_per_byte, limit_ns_per_byte) for line in lines]
    outcome = foremost(findings).outcome
    return Finding(outcome=outcome, reason="; ".join(each.reason for each in findings if each.outcome is outcome))


def _line(
    kind: str, products: Sequence[ProductSize], decode_ns: Mapping[tuple[str, int | None], float]
) -> Iterator[MeasuredLine]:
    times: dict[tuple[str, int], list[float]] = {}
    for each in products:
        time_ns = decode_ns.get((each.role, each.layer))
        if each.type == kind and time_ns:
            times.setdefault((each.role, each.weight_bytes), []).append(time_ns)
    middle = {key: sorted(found)[len(found) // 2] for key, found in times.items()}
    fit = fit_line([n_bytes for _, n_bytes in middle], list(middle.values()), is_relative=True)
    if fit is not None and len({n_bytes for _, n_bytes in middle}) > 2:
        places = zip(middle, fit.deviations_ratio, strict=True)
        off = [(role, ratio) for (role, _), ratio in places if ratio is not None]
        yield MeasuredLine(type=kind, fit=fit, deviations=tuple(sorted(off, key=lambda each: (-each[1], each[0]))))


def _judged(line: MeasuredLine, expected_ns_per_byte: float | None, limit_ns_per_byte: float | None) -> Finding:
    fit, above = line.fit, [each for each in line.deviations if each[1] > MOST_DEVIATION_RATIO]
    rate = f"{1.0 / fit.slope:.1f} GB/s" if fit.slope > 0 else "no slope"
    r_squared = 0.0 if fit.r_squared is None else fit.r_squared
    text = f"{line.type}: {fit.n_points} roles, {rate}, R² {r_squared:.3f}, furthest {_named(line.deviations[:1])}"
    if above:
        return Finding(outcome=Outcome.SLOW, reason=f"{text}; above the line by too much: {_named(above)}")
    if r_squared < LEAST_R_SQUARED:
        return Finding(outcome=Outcome.SLOW, reason=f"{text}; no line, expected R² of {LEAST_R_SQUARED} and more")
    if limit_ns_per_byte is None or expected_ns_per_byte is None:
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=f"{text}; nothing is known of what a byte should cost")
    text += f", expected {1.0 / expected_ns_per_byte:.1f} GB/s and {1.0 / limit_ns_per_byte:.1f} GB/s at least"
    return Finding(outcome=Outcome.SLOW if fit.slope > limit_ns_per_byte else Outcome.PASS, reason=text)


def _named(deviations: Sequence[tuple[str, float]]) -> str:
    shown = [f"{role} {ratio:+.0%}" for role, ratio in deviations[:_MOST_NAMED]]
    more = len(deviations) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


#: Fewer distances than these are expected by chance in a run that is too short to tell.
LEAST_DISTANCES = 30


def judge_reuse(layers: Sequence[LayerReuse], expected: ReuseExpectation, *, n_layers: int) -> Finding:
    """Judge the experts of an unbroken stretch of decoding.

    IMPOSSIBLE where no router can have made these choices, INVALID where choices are missing, INCONCLUSIVE where the
    stretch is too short or experts are reused later than a router without preference would; else PASS, with what the
    distance says.
    """
    if not layers:
        return Finding(outcome=Outcome.INVALID, reason="no choices of experts were recorded")
    if len(layers) != n_layers or any(each.n_iterations != expected.n_steps for each in layers):
        steps = sorted({each.n_iterations for each in layers})
        seen = f"{len(layers)} layers with {steps[0]} to {steps[-1]} steps were recorded"
        return Finding(outcome=Outcome.INVALID, reason=f"{seen}, expected {n_layers} with {expected.n_steps}")
    if broken := next(filter(None, (_broken(each, expected) for each in layers)), None):
        return Finding(outcome=Outcome.IMPOSSIBLE, reason=broken)
    return _distance(layers, expected)


def _broken(layer: LayerReuse, expected: ReuseExpectation) -> str | None:
    """Say what no router can have done; None where all could be."""
    if layer.n_experts > expected.n_experts:
        return f"layer {layer.layer}: an expert {layer.n_experts - 1}, expected 0 to {expected.n_experts - 1}"
    odd = next((batch for batch in layer.batches() if len(batch) != expected.n_used), None)
    if odd is None:
        return None
    return f"layer {layer.layer}: a token with {len(odd)} different experts, expected {expected.n_used}"


def _distance(layers: Sequence[LayerReuse], expected: ReuseExpectation) -> Finding:
    distances = [distance for layer in layers for distance in layer.distances]
    mean, lower, upper = expected.mean_distance, expected.lower_distance, expected.upper_distance
    if expected.n_distances < LEAST_DISTANCES or not distances or mean is None or lower is None or upper is None:
        few = f"{expected.n_steps} steps of {len(layers)} layers are too few to tell how experts are reused"
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=few)
    found = sum(distances) / len(distances)
    text = (
        f"an expert is used again after {found:.2f} steps, {mean:.2f} ({lower:.2f} to {upper:.2f}) where a router "
        f"prefers none; {expected.density_ratio:.1%} of the experts a step"
    )
    if found > upper:
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=f"{text}; it spreads its tokens more evenly than chance")
    preference = "it prefers some, so a cache of experts hits more often" if found < lower else "it prefers none"
    return Finding(outcome=Outcome.PASS, reason=f"{text}; {preference}")


#: How much less balanced than expected a role may be: caches, and what else a core does, differ from thread to thread.
TOLERANCE_RATIO = 1.25

#: How many times what it takes on a thread without work an operator must take, and how long at least: of a shorter one
#: the recorder's own time and the first access to what another core has written hide how the work is shared. They are
#: a smaller part of the difference between all and nothing.
LEAST_RUN_RATIO = 20
LEAST_ALONE_NS, LEAST_SHARED_NS = 2_000, 5_000


def judge_balance(
    found: RoleBalance | None, expected: BalanceExpectation, *, has_ends: bool, least_thread_ns: int
) -> Finding:
    """Judge one role.

    SLOW where its threads share the work less evenly than the rules have it. IMPOSSIBLE where the rules give all work
    to one thread and several are as busy: then waiting was taken for work. INVALID where the role, or the ends of its
    threads, were not recorded; INCONCLUSIVE where it ran less often than `LEAST_RUNS`, or is too short: shorter
    than `LEAST_RUN_RATIO` times `least_thread_ns`, what an operator takes on a thread that has next to nothing to do.
    """
    if not has_ends:
        return Finding(outcome=Outcome.INVALID, reason="the recorder saw no ends of operators on their threads")
    if found is None:
        return Finding(outcome=Outcome.INVALID, reason="no such operator was recorded")
    if found.n_threads != expected.n_threads:
        seen = f"{found.n_threads} threads computed it, expected {expected.n_threads}"
        return Finding(outcome=Outcome.INVALID, reason=seen)
    alone = "; one thread works alone" if found.is_on_one_thread else ""
    text = (
        f"busiest of {found.n_threads} threads over their mean {found.balance_ratio:.2f}, "
        f"expected {expected.balance_ratio:.2f} and {expected.limit_ratio * TOLERANCE_RATIO:.2f} at most{alone}"
    )
    if short := _too_little(found, expected, least_thread_ns):
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=f"{text}; {short}")
    if expected.is_on_one_thread and found.balance_ratio < expected.balance_ratio / TOLERANCE_RATIO:
        wrong = f"{text}; the rules give all rows to one thread, so the others' time is waiting"
        return Finding(outcome=Outcome.IMPOSSIBLE, reason=wrong)
    if found.balance_ratio > expected.limit_ratio * TOLERANCE_RATIO:
        return Finding(outcome=Outcome.SLOW, reason=f"{text}; the threads share it less evenly than the rules have it")
    return Finding(outcome=Outcome.PASS, reason=text)


def _too_little(found: RoleBalance, expected: BalanceExpectation, least_thread_ns: int) -> str | None:
    least_ns = LEAST_ALONE_NS if expected.is_on_one_thread else LEAST_SHARED_NS
    least_ns = max(least_ns, LEAST_RUN_RATIO * least_thread_ns)
    if found.n_runs < LEAST_RUNS:
        return f"only {format_count(found.n_runs, 'run')} to judge by, expected {LEAST_RUNS} and more"
    if found.busiest_ns < least_ns:
        return f"{format_ns(found.busiest_ns)} a run is too short to judge, expected {format_ns(least_ns)} and more"
    return None


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
    workload, n_threads = findings.workload, findings.n_threads
    if what.startswith(f"{BALANCE}/"):
        _, phase, role = what.split("/", 2)
        return _balance(findings, Phase(phase), role)
    if what == ATTENTION_GROWTH:
        positions = [attended_positions(workload, n_used, n_threads) for n_used in findings.contexts]
        slope_ns = None if ceilings is None else growth_expectation(workload).slope_ns(ceilings)
        return judge_growth(positions, findings.attention_ns, slope_ns, tolerance_ratio)
    if what == DECODE_LINEARITY:
        expected = linearity_expectation(workload)
        slope_ns = None if ceilings is None else expected.slope_ns_per_byte(ceilings)
        return judge_linearity(expected, findings.decode_ns, slope_ns, tolerance_ratio)
    if what != EXPERT_REUSE:
        return Finding(outcome=Outcome.INVALID, reason="no such case is known")
    n_layers = n_routed_layers(workload)
    if n_layers == 0:
        return Finding(outcome=Outcome.INVALID, reason="the architecture has no experts")
    reuse = reuse_expectation(*routed_experts(workload), n_layers, findings.n_stretch_steps)
    return judge_reuse(findings.layers, reuse, n_layers=n_layers)


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
