"""What a trace says of the cases, and the verdict on each."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.expectation.graph import Operator
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.thread_rules import BalanceExpectation
from perfsuite.expectation.trace_cases import LinearityExpectation, ProductSize, reuse_expectation, trace_cases
from perfsuite.experiments.tracing.judgement import (
    TraceFindings,
    judge_balance,
    judge_growth,
    judge_linearity,
    judge_reuse,
    judge_trace,
    measured_growth,
    measured_lines,
    trace_findings,
)
from perfsuite.records.ceilings import Bandwidth, Ceilings
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.events import Node, Phase
from perfsuite.records.outcome import Finding, Judgement, Outcome
from perfsuite.testing.engine_traces import engine_trace, node, tensor
from perfsuite.trace.experts.reuse import expert_reuse
from perfsuite.trace.operators import traced_operators
from perfsuite.trace.statistics.operator_statistics import dimensions_of
from perfsuite.trace.statistics.thread_balance import RoleBalance
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve
from tests.synthetic_statistics import attention, experts_of, product, step_events

SIZES = {"Kcur": 100_000, "Qcur": 300_000, "ffn_up": 900_000, "ffn_out": 900_000, "result_output": 30_000_000}
LAYERS = (0, 1, 2)


def expectation() -> LinearityExpectation:
    """Return products of four sizes in three layers, and one of another type."""
    products = [
        ProductSize(role=role, layer=None if role == "result_output" else layer, type="q8_0", weight_bytes=n_bytes)
        for role, n_bytes in SIZES.items()
        for layer in LAYERS[: 1 if role == "result_output" else 3]
    ]
    odd = ProductSize(role="ffn_moe_logits", layer=0, type="f32", weight_bytes=500_000)
    return LinearityExpectation(products=(*products, odd), working_set_bytes=100_000_000)


def times(slower: Mapping[str, float] | None = None) -> dict[tuple[str, int | None], float]:
    """Return 1 µs and 0.1 ns a byte, times a factor for some roles; the first layer is disturbed."""
    factors = slower or {}
    return {
        (each.role, each.layer): (1_000 + 0.1 * each.weight_bytes)
        * factors.get(each.role, 1.0)
        * (5.0 if each.layer == 0 else 1.0)
        for each in expectation().products
    }


def linearity_judged(slower: Mapping[str, float] | None = None, expected_ns: float | None = 0.05) -> Finding:
    """Judge products; four times the expected slope passes."""
    return judge_linearity(expectation(), times(slower), expected_ns, 4.0)


Batches = list[list[int]]


def reuse_judged(layers: list[Batches], n_steps: int | None = None, n_layers: int | None = None) -> Finding:
    chosen = [(step, layer, [batch]) for layer, batches in enumerate(layers) for step, batch in enumerate(batches)]
    n_layers = n_layers or len(layers)
    expected = reuse_expectation(60, 4, n_layers, n_steps or len(layers[0]))
    return judge_reuse(expert_reuse(experts_of(chosen), 60), expected, n_layers=n_layers)


def drawn(n_steps: int, n_experts: int = 60, seed: int = 1) -> Batches:
    """Return the choices of a router that prefers none of so many experts."""
    chance = random.Random(seed)
    return [chance.sample(range(n_experts), 4) for _ in range(n_steps)]


TURNS: Batches = [[(4 * step + each) % 60 for each in range(4)] for step in range(60)]


SHARED = BalanceExpectation(n_threads=4, balance_ratio=1.0, piece_ratio=0.25)
ALONE = BalanceExpectation(n_threads=4, balance_ratio=4.0, returns_at_once=True)


def found(balance_ratio: float, **fields: Any) -> RoleBalance:
    usual = {"phase": Phase.DECODE, "role": "ffn_up", "op": "MUL_MAT", "n_threads": 4, "n_runs": 100}
    return RoleBalance(balance_ratio=balance_ratio, **{**usual, "busiest_ns": 50_000.0, **fields})


def balance_judged(role: RoleBalance | None, expected: BalanceExpectation = SHARED, **fields: Any) -> Finding:
    """Judge a role of a recorder whose own time is 100 ns."""
    return judge_balance(role, expected, **{"has_ends": True, "least_thread_ns": 100, **fields})


#: What one thread computes alone, while the others wait inside the operator.
MEETING = BalanceExpectation(n_threads=4, balance_ratio=4.0)


def growth_judged(law: Callable[[int], float], expected_ns: float | None = 100.0, n: int = 200) -> Finding:
    """Judge a law of time over positions with 1 % of noise; three times the expected slope passes."""
    chance = random.Random(2)
    positions = list(range(100, 100 + n))
    times = [round(law(each) * (1.0 + chance.gauss(0.0, 0.01))) for each in positions]
    return judge_growth(positions, times, expected_ns, 3.0)


def few(positions: Sequence[int], times: Sequence[int], tolerance: float | None = 3.0) -> Finding:
    return judge_growth(positions, times, 100.0, tolerance)


def doubled(batches: Batches) -> Batches:
    return [*batches[:7], [5, 5, 6, 7], *batches[8:]]


Judge = Callable[[], Finding]
_INVALID, _OPEN, _NOT_POSSIBLE = Outcome.INVALID, Outcome.INCONCLUSIVE, Outcome.IMPOSSIBLE
_SLOW, _PASS = Outcome.SLOW, Outcome.PASS


@pytest.mark.parametrize(
    ("judge", "outcome", "told"),
    [
        # products: 10 GB/s where 20 are expected and 5 pass; a disturbed layer does not count
        (lambda: linearity_judged(), _PASS, "10.0 GB/s, R² 1.000"),
        (lambda: linearity_judged({"ffn_out": 3.0}), _SLOW, "above the line by too much: ffn_out"),
        (lambda: linearity_judged({}, 0.01), _SLOW, "100.0 GB/s"),
        (lambda: linearity_judged({"result_output": 0.02, "Kcur": 1.2}), _SLOW, "R² -1.116"),
        (lambda: linearity_judged({}, None), _OPEN, "nothing is known of what a byte should cost"),
        (lambda: linearity_judged({"ffn_out": 3.0}, None), _SLOW, "ffn_out"),
        (lambda: judge_linearity(expectation(), {("Qcur", 0): 1.0}, 0.05, 4.0), _INVALID, "too few products"),
        # routers: no preference, favourites, turns, a short run; what none can do, and what is missing
        (lambda: reuse_judged([drawn(60, seed=layer) for layer in range(4)]), _PASS, "it prefers none"),
        (lambda: reuse_judged([drawn(60, n_experts=12, seed=layer) for layer in range(4)]), _PASS, "hits more"),
        (lambda: reuse_judged([TURNS] * 4), _OPEN, "more evenly than chance"),
        (lambda: reuse_judged([drawn(6)]), _OPEN, "6 steps of 1 layers are too few"),
        (lambda: reuse_judged([doubled(drawn(60))]), _NOT_POSSIBLE, "3 different experts, expected 4"),
        (lambda: judge_reuse((), reuse_expectation(60, 4, 2, 60), n_layers=2), _INVALID, "no choices"),
        (lambda: reuse_judged([drawn(60)], n_layers=2), _INVALID, "1 layers with 60 to 60 steps were recorded"),
        (lambda: reuse_judged([drawn(60)], n_steps=61), _INVALID, "expected 1 with 61"),
        # threads: roles that are shared, that one thread computes, and that all wait for
        (lambda: balance_judged(found(1.0)), _PASS, "1.00, expected 1.00"),
        (lambda: balance_judged(found(1.5)), _PASS, "1.50, expected 1.00"),
        (lambda: balance_judged(found(1.6)), _SLOW, "1.60, expected 1.00"),
        (lambda: balance_judged(found(4.0)), _SLOW, "4.00, expected 1.00"),
        (lambda: balance_judged(found(3.3), ALONE), _PASS, "3.30, expected 4.00"),
        (lambda: balance_judged(found(3.9), ALONE), _PASS, "3.90, expected 4.00"),
        (lambda: balance_judged(found(1.0), ALONE), _NOT_POSSIBLE, "the others' time is waiting"),
        (lambda: balance_judged(found(1.0), MEETING), _PASS, "1.00, expected 4.00"),
        (lambda: balance_judged(None), _INVALID, "no such operator"),
        (lambda: balance_judged(found(1.0), has_ends=False), _INVALID, "no ends"),
        (lambda: balance_judged(found(1.0, n_threads=2)), _INVALID, "2 threads computed it, expected 4"),
        (lambda: balance_judged(found(4.0, n_runs=3)), _OPEN, "only 3 runs"),
        (lambda: balance_judged(found(4.0, busiest_ns=3_000.0)), _OPEN, "3.00 µs a run is too short"),
        (lambda: balance_judged(found(4.0), least_thread_ns=10_000), _OPEN, "50.0 µs a run is too short"),
        # growth: a position may cost three times what is expected, and all of them must lie on a line
        (lambda: growth_judged(lambda n: 5_000 + 150 * n), _PASS, "expected 100 ns and 300 ns at most"),
        (lambda: growth_judged(lambda n: 5_000 + 400 * n), _SLOW, "expected 100 ns and 300 ns at most"),
        (lambda: growth_judged(lambda n: 500_000 + 300 * n), _OPEN, "300 ns at most"),
        (lambda: growth_judged(lambda n: 0.4 * n * n, n=800), _SLOW, "off the line, 25% at most"),
        (lambda: growth_judged(lambda n: 100 * n * (2 if n > 260 else 1)), _SLOW, "off the line"),
        (lambda: growth_judged(lambda n: 50_000.0), _PASS, "a position"),
        (lambda: growth_judged(lambda n: 150.0 * n, None), _OPEN, "nothing is known of what it should be"),
        (lambda: few(range(40), [100 * each + 100 for each in range(40)], None), _OPEN, "nothing is known"),
        (lambda: few([], []), _INVALID, "no operator of attention"),
        (lambda: few([1, 2, 3], [5, 6, 7]), _OPEN, "3 steps at 3 lengths"),
        (lambda: few([256] * 40, [5] * 40), _OPEN, "40 steps at 1 lengths"),
    ],
)
def test_what_a_trace_shows_has_an_outcome_and_its_reason(judge: Judge, outcome: Outcome, told: str) -> None:
    finding = judge()
    assert finding.outcome is outcome
    assert told in finding.reason


def test_a_line_is_fitted_to_the_layers_medians() -> None:
    (line,) = measured_lines(expectation(), times())
    assert line.type == "q8_0"
    assert (line.fit.slope, line.fit.intercept) == (pytest.approx(0.1), pytest.approx(1_000.0))


CEILINGS = Ceilings(
    n_threads=2,
    bandwidths=(
        Bandwidth(working_set_bytes=1 << 30, read_bytes_per_s=1e10, copy_bytes_per_s=1e10, triad_bytes_per_s=1e10),
    ),
    fp32_flops_per_s=1e11,
    int8_flops_per_s=1e11,
    f16_flops_per_s=None,
    dispatch_ns=1_000,
)


def workload(name: str = "smollm2-135m-l2-q8_0") -> LlamaWorkload:
    return llama_workload(resolve(name, cache_dir=Path("nowhere")), find_scenario("p0-g40"))


def traced(operator: Operator) -> Node:
    """Return an operator of the analytical graph as a recorder would have seen it."""
    suffix = "" if operator.layer is None else f"-{operator.layer}"
    name = operator.role.removesuffix(f"_{operator.op.lower()}")
    sources = [tensor(f"source {at}", each.ne, type=each.type) for at, each in enumerate(operator.sources)]
    op, _, fused = operator.op.partition("+")
    output = tensor(f"{name}{suffix}", operator.output.ne, type=operator.output.type)
    return node(op, output, *sources, fused_op=fused or None)


def run_trace(subject: LlamaWorkload) -> EngineTrace:
    """Return a decode whose products take 20 µs and 0.1 ns a byte, attention 0.5 µs a position, the rest thread 0."""
    operators = subject.graph(Phase.DECODE)
    graph = tuple(map(traced, operators))
    works = [dimensions_of(each).work for each in traced_operators(graph)]

    def law(step: int, position: int, thread: int) -> int:
        operator = operators[position]
        if operator.op in ("MUL_MAT", "MUL_MAT_ID"):
            return round(20_000 + 0.1 * operator.cost.parameter_bytes)
        if operator.op == "FLASH_ATTN_EXT":
            return 10_000 + 250 * step
        if operator.op == "ROPE":
            return 6_000
        return 6_000 + works[position] // 100 if thread == 0 else 100

    events = [each for step in range(40) for each in step_events(step, law, len(graph))]
    return engine_trace(events, graphs=(graph,))


def judged(
    findings: TraceFindings | None, what: str, subject: LlamaWorkload | None = None, tolerance_ratio: float = 12.0
) -> Judgement:
    case_id = f"trace/{(subject or workload()).prefix}/{what}"
    return judge_trace(findings, case_id, ceilings=CEILINGS, tolerance_ratio=tolerance_ratio, reason="too late")


@pytest.fixture(scope="module")
def findings() -> TraceFindings:
    return trace_findings(run_trace(workload()), workload(), n_threads=2)


def test_a_run_as_expected_passes(findings: TraceFindings) -> None:
    cases = [case.case_id for case in trace_cases(workload(), 2)]
    found = {
        case_id: judge_trace(findings, case_id, ceilings=CEILINGS, tolerance_ratio=12.0).outcome for case_id in cases
    }
    assert not [case_id for case_id, outcome in found.items() if outcome.fails]
    assert found[cases[-1]] is found[cases[-2]] is Outcome.PASS
    assert sum(outcome is Outcome.PASS for outcome in found.values()) >= 10
    assert judged(findings, "attention_growth").outcome is Outcome.PASS
    assert judged(findings, "attention_growth", tolerance_ratio=1.01).outcome is Outcome.SLOW


def test_experts_are_judged_where_they_were_recorded() -> None:
    """The choices of a routed decode pass, are missing where none were recorded, and cannot name an expert twice."""
    subject, chance = workload("qwen1.5-moe-a2.7b-l2-q4_0"), random.Random(3)
    trace = run_trace(subject)
    steps = [(step, layer) for step in range(40) for layer in (0, 1)]
    drawn = experts_of((*step, [chance.sample(range(60), 4)]) for step in steps)
    twice = experts_of((*step, [[1, 1, 2, 3]]) for step in steps)
    outcomes = [
        judged(trace_findings(each, subject, n_threads=2), "expert_reuse", subject).outcome
        for each in (replace(trace, experts=drawn), trace, replace(trace, experts=twice))
    ]
    assert outcomes == [Outcome.PASS, Outcome.INVALID, Outcome.IMPOSSIBLE]


@pytest.mark.parametrize("what", ["attention_growth", "balance/decode/unknown", "something", "expert_reuse"])
def test_what_was_not_traced_or_was_disturbed_or_is_no_case_is_invalid(findings: TraceFindings, what: str) -> None:
    assert judged(None, what).reason == "too late"
    disturbed = judged(replace(findings, complaint="others took 30 %"), what)
    assert (disturbed.outcome, disturbed.reason) == (Outcome.INVALID, "others took 30 %")
    judgement = judged(findings, what)
    assert judgement.kind == "trace"
    assert (judgement.outcome is Outcome.INVALID) is (what != "attention_growth")


def test_steps_of_one_length_count_by_their_median() -> None:
    positions = [each for each in range(20) for _ in range(3)]
    times = [time for each in range(20) for time in (1_000 + 50 * each, 1_000 + 50 * each, 90_000)]
    found = measured_growth(positions, times)
    assert found is not None
    assert (found.slope_ns, found.intercept_ns) == (pytest.approx(50.0), pytest.approx(1_000.0))


GRAPH = (product("Qcur", 64, 64), attention(256))


def test_a_prefill_s_operators_are_not_decode_s() -> None:
    events = [*step_events(0, lambda *_: 90_000, 2, n_tokens=5), *step_events(1, lambda *_: 1_000, 2)]
    found = trace_findings(engine_trace(events, graphs=(GRAPH,)), workload(), n_threads=2)
    assert found.decode_ns["Qcur", 0] == 1_000
    assert found.contexts == (6,)
    empty = trace_findings(engine_trace(graphs=()), workload(), n_threads=2)
    assert (empty.contexts, empty.attention_ns, empty.layers, empty.has_ends) == ((), (), (), False)


def test_the_experts_are_those_of_the_longest_stretch() -> None:
    tokens = [1, 1, 5, 1, 1, 1]
    events = [each for at, n in enumerate(tokens) for each in step_events(at, lambda *_: 1_000, 1, n_tokens=n)]
    experts = experts_of((at, 0, [[at % 4, 5]] * n) for at, n in enumerate(tokens))
    trace = engine_trace(events, graphs=(GRAPH,), experts=experts, n_experts=8)
    found = trace_findings(trace, workload(), n_threads=2)
    assert found.n_stretch_steps == 3
    assert found.layers[0].batches() == ((3, 5), (0, 5), (1, 5))


@pytest.mark.parametrize(
    ("holes", "complaint", "told"),
    [
        ({"n_lost": 3}, None, "3 events of the trace were lost"),
        ({"cut": "at byte 7"}, None, "the trace breaks off: at byte 7"),
        ({"n_lost": 3}, "throttled", "throttled"),
    ],
)
def test_lost_events_and_a_cut_are_complaints(holes: dict[str, Any], complaint: str | None, told: str) -> None:
    trace = engine_trace(graphs=(GRAPH,), **holes)
    assert trace_findings(trace, workload(), n_threads=2, complaint=complaint).complaint == told
