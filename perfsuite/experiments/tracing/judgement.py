"""What a trace says of the cases that are judged by it, and the verdicts: growth, lines, experts, balance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from perfsuite.expectation.llama_workload import LlamaWorkload
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
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.engine_trace import EngineTrace, Ints
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Finding, Judgement, Outcome, foremost, told_judgement
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse
from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable, operator_runs, operator_table
from perfsuite.trace.statistics.operator_statistics import LineFit, fit_line
from perfsuite.trace.statistics.thread_balance import RoleBalance, least_thread_time, role_balances
from perfsuite.trace.statistics.token_statistics import is_attention, role_times, steps_of
from perfsuite.units import format_count, format_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFindings:
    """One traced run of a workload."""

    workload: LlamaWorkload
    n_threads: int
    #: Why nothing is to be told from it, such as competition for the processors; None where there is no such thing.
    complaint: str | None
    has_ends: bool
    #: What an operator takes on a thread that has next to nothing to do, ns.
    least_thread_ns: int
    #: By phase and role.
    balances: Mapping[tuple[Phase, str], RoleBalance]
    #: Of each step of decoding: positions in use, and the time of attention, all layers together, ns.
    contexts: tuple[int, ...]
    attention_ns: tuple[int, ...]
    #: Median time of each operator of a step of decoding, ns, by role and layer.
    decode_ns: Mapping[tuple[str, int | None], float]
    #: The steps of the longest unbroken stretch of decoding, and the experts in it.
    n_stretch_steps: int
    layers: tuple[LayerReuse, ...]


def trace_findings(
    trace: EngineTrace, workload: LlamaWorkload, *, n_threads: int, complaint: str | None = None
) -> TraceFindings:
    """Gather what is judged from a trace of one process, disturbed where there is a complaint.

    The trace has operators; balance needs their ends, too, and the reuse of experts the routers' choices.
    """
    runs, table = operator_runs(trace), operator_table(trace)
    steps = steps_of(trace, runs, table)
    roles, times_ns = role_times(steps, runs, table)
    attention_ns = times_ns[[at for at, role in enumerate(roles) if is_attention(*role)]].sum(axis=0)
    if trace.n_lost and not complaint:
        complaint = f"{trace.n_lost} events of the trace were lost"
    elif trace.cut and not complaint:
        complaint = f"the trace breaks off: {trace.cut}"
    stretch = _longest_stretch(steps.number[steps.is_decode])
    return TraceFindings(
        workload=workload,
        n_threads=n_threads,
        complaint=complaint,
        has_ends=bool(runs.has_ends.any()),
        least_thread_ns=least_thread_time(runs),
        balances={(each.phase, each.role): each for each in role_balances(runs, table)},
        contexts=tuple(steps.context[steps.is_decode].tolist()),
        attention_ns=tuple(attention_ns.tolist()),
        decode_ns=_decode_ns(runs, table),
        n_stretch_steps=int(stretch.size),
        layers=expert_reuse(trace.experts[np.isin(trace.experts["iteration"], stretch)], trace.n_experts),
    )


def _decode_ns(runs: OperatorRuns, table: OperatorTable) -> dict[tuple[str, int | None], float]:
    labels, of_run = table.labelled(runs, lambda operator, phase: (phase, operator.role, operator.layer))
    order = np.argsort(of_run, kind="stable")
    ends = np.cumsum(np.bincount(of_run, minlength=len(labels)))
    parts = np.split(runs.duration_ns[order], ends[:-1]) if labels else []
    return {
        (role, layer): float(np.median(part))
        for (phase, role, layer), part in zip(labels, parts, strict=True)
        if phase is Phase.DECODE
    }


def _longest_stretch(numbers: Ints) -> Ints:
    """Return the most steps that follow each other."""
    found: Iterable[int] = numbers.tolist()
    breaks = [at for at, (one, other) in enumerate(pairwise(found), start=1) if other != one + 1]
    return max(np.split(numbers, breaks), key=len)


def _finding(outcome: Outcome, reason: str) -> Finding:
    return Finding(outcome=outcome, reason=reason)


#: Chance that the slope of attention lies within its bounds.
CONFIDENCE = 0.95
#: How far the time of attention at any context may be from the line.
_MOST_BEND_RATIO = 0.25
#: Fewer steps, or fewer different lengths, have no slope.
LEAST_STEPS, LEAST_LENGTHS = 8, 4
_MOST_BLOCKS, _BINS = 512, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGrowth:
    """Time of attention over the positions that it works on, by Theil and Sen."""

    slope_ns: float
    lower_ns: float
    upper_ns: float
    intercept_ns: float
    #: The furthest that the line is from the median of an eighth of the lengths, in parts of the time there.
    deviation_ratio: float


def measured_growth(positions: Sequence[int], times_ns: Sequence[int]) -> MeasuredGrowth | None:
    """Fit time over positions; None where there are too few steps or lengths."""
    lengths, where = np.unique(np.asarray(positions, dtype=np.int64), return_inverse=True)
    if len(positions) < LEAST_STEPS or lengths.size < LEAST_LENGTHS:
        return None
    from scipy.stats import theilslopes  # takes a third of a second to load

    parts = np.split(np.asarray(times_ns)[np.argsort(where, kind="stable")], np.cumsum(np.bincount(where))[:-1])
    x, y = (
        np.array([np.median(block) for block in np.array_split(each, min(_MOST_BLOCKS, lengths.size))])
        for each in (lengths, np.array([np.median(part) for part in parts]))
    )
    slope, intercept, lower, upper = map(float, theilslopes(y, x, alpha=CONFIDENCE))
    off = (intercept + slope * x - y) / np.maximum(y, 1.0)
    deviation = np.abs([np.median(part) for part in np.array_split(off, min(_BINS, x.size))]).max()
    return MeasuredGrowth(
        slope_ns=slope, lower_ns=lower, upper_ns=upper, intercept_ns=intercept, deviation_ratio=float(deviation)
    )


def judge_growth(
    positions: Sequence[int],
    times_ns: Sequence[int],
    expected_ns_per_position: float | None,
    tolerance_ratio: float | None,
) -> Finding:
    """Judge whether a position of context costs attention what it should, and each the same.

    SLOW where a position surely costs more than expected times the tolerance, or where the time, though it grows, is
    not on a line. INCONCLUSIVE where the bounds of the slope hold the limit, or no slope is known that was expected;
    INVALID where there is no slope. Positions are those that attention takes as long as, a value each step of decoding.
    """
    if not any(times_ns):
        return _finding(Outcome.INVALID, "no operator of attention was recorded")
    found = measured_growth(positions, times_ns)
    if found is None:
        few = f"{len(times_ns)} steps at {len(set(positions))} lengths of context make no line"
        return _finding(Outcome.INCONCLUSIVE, f"{few}, expected {LEAST_STEPS} at {LEAST_LENGTHS}")
    text = (
        f"{format_ns(found.slope_ns)} a position (95 % bounds {format_ns(found.lower_ns)} to "
        f"{format_ns(found.upper_ns)}) over {min(positions)} to {max(positions)}"
    )
    if found.lower_ns > 0 and found.deviation_ratio > _MOST_BEND_RATIO:
        bend = f"{found.deviation_ratio:.0%} off the line, {_MOST_BEND_RATIO:.0%} at most expected"
        return _finding(Outcome.SLOW, f"{text}; {bend}")
    if expected_ns_per_position is None or tolerance_ratio is None:
        return _finding(Outcome.INCONCLUSIVE, f"{text}; nothing is known of what it should be")
    limit_ns = expected_ns_per_position * tolerance_ratio
    text += f", expected {format_ns(expected_ns_per_position)} and {format_ns(limit_ns)} at most"
    if found.lower_ns > limit_ns:
        return _finding(Outcome.SLOW, text)
    return _finding(Outcome.PASS if found.upper_ns <= limit_ns else Outcome.INCONCLUSIVE, text)


#: The least of the variance that the line over sizes must explain, and how far above it a role may be.
LEAST_R_SQUARED, _MOST_ABOVE_RATIO = 0.95, 0.5
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
    """Judge whether the products of a run take as long as their weights are large.

    SLOW where the line explains less than `LEAST_R_SQUARED`, where a role is too far above it, or where a byte costs
    more than the bandwidth allows for times the tolerance. INCONCLUSIVE of a line where nothing is known of what a byte
    should cost. INVALID where no type of weights has enough sizes among the products that were recorded. Times are
    those of a step of decoding, by role and layer.
    """
    lines = measured_lines(expected, decode_ns)
    if not lines:
        return _finding(Outcome.INVALID, "too few products of decoding were recorded for a line")
    limits = None
    if expected_ns_per_byte is not None and tolerance_ratio is not None:
        limits = expected_ns_per_byte, expected_ns_per_byte * tolerance_ratio
    findings = [_judged(line, limits) for line in lines]
    outcome = foremost(findings).outcome
    return _finding(outcome, "; ".join(each.reason for each in findings if each.outcome is outcome))


def _line(
    kind: str, products: Sequence[ProductSize], decode_ns: Mapping[tuple[str, int | None], float]
) -> Iterator[MeasuredLine]:
    times: dict[tuple[str, int], list[float]] = {}
    for each in products:
        time_ns = decode_ns.get((each.role, each.layer))
        if each.type == kind and time_ns:
            times.setdefault((each.role, each.weight_bytes), []).append(time_ns)
    middle = {key: sorted(found)[len(found) // 2] for key, found in times.items()}
    sizes = [n_bytes for _, n_bytes in middle]
    fit = fit_line(sizes, list(middle.values()), is_relative=True)
    if fit is not None and len(set(sizes)) > 2:
        places = zip(middle, fit.deviations_ratio, strict=True)
        off = [(role, ratio) for (role, _), ratio in places if ratio is not None]
        yield MeasuredLine(type=kind, fit=fit, deviations=tuple(sorted(off, key=lambda each: (-each[1], each[0]))))


def _judged(line: MeasuredLine, limits_ns_per_byte: tuple[float, float] | None) -> Finding:
    """Judge one line by what a byte is expected to cost, and by the most that it may."""
    fit, above = line.fit, [each for each in line.deviations if each[1] > _MOST_ABOVE_RATIO]
    rate = f"{1.0 / fit.slope:.1f} GB/s" if fit.slope > 0 else "no slope"
    r_squared = 0.0 if fit.r_squared is None else fit.r_squared
    text = f"{line.type}: {fit.n_points} roles, {rate}, R² {r_squared:.3f}, furthest {_named(line.deviations[:1])}"
    if above:
        return _finding(Outcome.SLOW, f"{text}; above the line by too much: {_named(above)}")
    if r_squared < LEAST_R_SQUARED:
        return _finding(Outcome.SLOW, f"{text}; no line, expected R² of {LEAST_R_SQUARED} and more")
    if limits_ns_per_byte is None:
        return _finding(Outcome.INCONCLUSIVE, f"{text}; nothing is known of what a byte should cost")
    expected, most = (1.0 / each for each in limits_ns_per_byte)
    text += f", expected {expected:.1f} GB/s and {most:.1f} GB/s at least"
    return _finding(Outcome.SLOW if fit.slope > limits_ns_per_byte[1] else Outcome.PASS, text)


def _named(deviations: Sequence[tuple[str, float]]) -> str:
    n_more = len(deviations) - _MOST_NAMED
    shown = ", ".join(f"{role} {ratio:+.0%}" for role, ratio in deviations[:_MOST_NAMED])
    return shown + (f" and {n_more} more" if n_more > 0 else "")


#: Fewer distances than these are expected by chance in a run that is too short to tell.
LEAST_DISTANCES = 30


def judge_reuse(layers: Sequence[LayerReuse], expected: ReuseExpectation, *, n_layers: int) -> Finding:
    """Judge the experts of an unbroken stretch of decoding.

    What must hold of any router is judged hard: a token's experts are different ones, as many as the architecture says,
    and every layer that routes does so in every step. What breaks this was read wrongly: IMPOSSIBLE where no router can
    have made these choices, INVALID where choices are missing. How far apart the uses of an expert lie is a property of
    the router and no fault: one that prefers some experts stays below the bounds of one that prefers none, which is
    reported. INCONCLUSIVE where the stretch is too short, or the tokens are spread more evenly than chance does: then
    nothing was shown of either.
    """
    if not layers:
        return _finding(Outcome.INVALID, "no choices of experts were recorded")
    if len(layers) != n_layers or any(each.n_iterations != expected.n_steps for each in layers):
        steps = sorted({each.n_iterations for each in layers})
        seen = f"{len(layers)} layers with {steps[0]} to {steps[-1]} steps were recorded"
        return _finding(Outcome.INVALID, f"{seen}, expected {n_layers} with {expected.n_steps}")
    if broken := next(filter(None, (_broken(each, expected) for each in layers)), None):
        return _finding(Outcome.IMPOSSIBLE, broken)
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
        return _finding(Outcome.INCONCLUSIVE, few)
    found = sum(distances) / len(distances)
    text = (
        f"an expert is used again after {found:.2f} steps, {mean:.2f} ({lower:.2f} to {upper:.2f}) where a router "
        f"prefers none; {expected.density_ratio:.1%} of the experts a step"
    )
    if found > upper:
        return _finding(Outcome.INCONCLUSIVE, f"{text}; it spreads its tokens more evenly than chance")
    preference = "it prefers some, so a cache of experts hits more often" if found < lower else "it prefers none"
    return _finding(Outcome.PASS, f"{text}; {preference}")


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
        return _finding(Outcome.INVALID, "the recorder saw no ends of operators on their threads")
    if found is None:
        return _finding(Outcome.INVALID, "no such operator was recorded")
    if found.n_threads != expected.n_threads:
        return _finding(Outcome.INVALID, f"{found.n_threads} threads computed it, expected {expected.n_threads}")
    most_ratio, alone = expected.limit_ratio * TOLERANCE_RATIO, expected.is_on_one_thread
    text = (
        f"busiest of {found.n_threads} threads over their mean {found.balance_ratio:.2f}, expected "
        f"{expected.balance_ratio:.2f} and {most_ratio:.2f} at most"
        f"{'; one thread works alone' if found.is_on_one_thread else ''}"
    )
    least_ns = max(LEAST_ALONE_NS if alone else LEAST_SHARED_NS, LEAST_RUN_RATIO * least_thread_ns)
    if found.n_runs < LEAST_RUNS:
        few = f"only {format_count(found.n_runs, 'run')} to judge by, expected {LEAST_RUNS} and more"
        return _finding(Outcome.INCONCLUSIVE, f"{text}; {few}")
    if found.busiest_ns < least_ns:
        short = f"{format_ns(found.busiest_ns)} a run is too short to judge, expected {format_ns(least_ns)} and more"
        return _finding(Outcome.INCONCLUSIVE, f"{text}; {short}")
    if alone and found.balance_ratio < expected.balance_ratio / TOLERANCE_RATIO:
        wrong = "the rules give all rows to one thread, so the others' time is waiting"
        return _finding(Outcome.IMPOSSIBLE, f"{text}; {wrong}")
    if found.balance_ratio > most_ratio:
        return _finding(Outcome.SLOW, f"{text}; the threads share it less evenly than the rules have it")
    return _finding(Outcome.PASS, text)


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
        finding = _finding(Outcome.INVALID, reason if findings is None else f"{findings.complaint}")
    else:
        what = case_id.removeprefix(f"{TRACE}/{findings.workload.prefix}/")
        finding = _judged_case(findings, what, ceilings, tolerance_ratio)
    return told_judgement(case_id, TRACE, finding.outcome, finding.reason)


def _judged_case(
    findings: TraceFindings, what: str, ceilings: Ceilings | None, tolerance_ratio: float | None
) -> Finding:
    workload, n_threads = findings.workload, findings.n_threads
    if what.startswith(f"{BALANCE}/"):
        _, phase, role = what.split("/", 2)
        balance = expected_balances(workload, Phase(phase), n_threads).get(role)
        if balance is None:
            return _finding(Outcome.INVALID, "no rule is known by which threads share this operator")
        found, least_ns = findings.balances.get((Phase(phase), role)), findings.least_thread_ns
        return judge_balance(found, balance, has_ends=findings.has_ends, least_thread_ns=least_ns)
    if what == ATTENTION_GROWTH:
        positions = [attended_positions(workload, n_used, n_threads) for n_used in findings.contexts]
        slope_ns = None if ceilings is None else growth_expectation(workload).slope_ns(ceilings)
        return judge_growth(positions, findings.attention_ns, slope_ns, tolerance_ratio)
    if what == DECODE_LINEARITY:
        expected = linearity_expectation(workload)
        slope_ns = None if ceilings is None else expected.slope_ns_per_byte(ceilings)
        return judge_linearity(expected, findings.decode_ns, slope_ns, tolerance_ratio)
    if what != EXPERT_REUSE:
        return _finding(Outcome.INVALID, "no such case is known")
    n_layers = n_routed_layers(workload)
    if n_layers == 0:
        return _finding(Outcome.INVALID, "the architecture has no experts")
    reuse = reuse_expectation(*routed_experts(workload), n_layers, findings.n_stretch_steps)
    return judge_reuse(findings.layers, reuse, n_layers=n_layers)
