"""The verdict on the cases of a trace."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.expectation.decode_linearity import LinearityExpectation, ProductSize
from perfsuite.expectation.expert_reuse import reuse_expectation
from perfsuite.expectation.graph import Operator
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.thread_rules import BalanceExpectation
from perfsuite.expectation.trace_cases import trace_cases
from perfsuite.experiments.tracing.findings import TraceFindings, trace_findings
from perfsuite.experiments.tracing.judgement import (
    judge_balance,
    judge_linearity,
    judge_reuse,
    judge_trace,
    measured_lines,
)
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.events import Node, Phase, Tensor
from perfsuite.records.outcome import Finding, Judgement, Outcome
from perfsuite.testing.engine_traces import engine_trace, node, tensor
from perfsuite.trace.experts.reuse import expert_reuse
from perfsuite.trace.operators import traced_operators
from perfsuite.trace.statistics.operator_statistics import dimensions_of
from perfsuite.trace.statistics.thread_balance import RoleBalance
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve
from tests.synthetic_statistics import experts_of, step_events

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


def test_products_on_a_line_pass() -> None:
    """10 GB/s where 20 are expected and 5 pass; a disturbed layer does not count."""
    finding = linearity_judged()
    assert finding.outcome is Outcome.PASS
    assert "10.0 GB/s, R² 1.000" in finding.reason
    (line,) = measured_lines(expectation(), times())
    assert line.type == "q8_0"
    assert (line.fit.slope, line.fit.intercept) == (pytest.approx(0.1), pytest.approx(1_000.0))


@pytest.mark.parametrize(
    ("slower", "expected_ns", "outcome", "told"),
    [
        ({"ffn_out": 3.0}, 0.05, Outcome.SLOW, "above the line by too much: ffn_out"),
        ({}, 0.01, Outcome.SLOW, "100.0 GB/s"),
        ({"result_output": 0.02, "Kcur": 1.2}, 0.05, Outcome.SLOW, ""),
        ({}, None, Outcome.INCONCLUSIVE, "nothing is known of what a byte should cost"),
        ({"ffn_out": 3.0}, None, Outcome.SLOW, "ffn_out"),
    ],
    ids=["a role above it", "slow memory", "no line", "no forecast", "no line and no forecast"],
)
def test_what_is_off_the_line_or_slow_is_told(
    slower: Mapping[str, float], expected_ns: float | None, outcome: Outcome, told: str
) -> None:
    finding = linearity_judged(slower, expected_ns)
    assert finding.outcome is outcome
    assert told in finding.reason


def test_too_few_products_are_invalid() -> None:
    assert judge_linearity(expectation(), {("Qcur", 0): 1.0}, 0.05, 4.0).outcome is Outcome.INVALID


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


@pytest.mark.parametrize(
    ("layers", "outcome", "told"),
    [
        ([drawn(60, seed=layer) for layer in range(4)], Outcome.PASS, "it prefers none"),
        ([drawn(60, n_experts=12, seed=layer) for layer in range(4)], Outcome.PASS, "a cache of experts hits more"),
        ([TURNS] * 4, Outcome.INCONCLUSIVE, "more evenly than chance"),
        ([drawn(6)], Outcome.INCONCLUSIVE, "6 steps of 1 layers are too few"),
    ],
    ids=["no preference", "favourites", "turns", "a short run"],
)
def test_what_a_router_prefers_is_told_and_no_fault(layers: list[Batches], outcome: Outcome, told: str) -> None:
    finding = reuse_judged(layers)
    assert finding.outcome is outcome
    assert told in finding.reason


def test_what_no_router_can_do_is_impossible_and_what_is_missing_invalid() -> None:
    batches = drawn(60)
    batches[7] = [5, 5, 6, 7]
    finding = reuse_judged([batches])
    assert finding.outcome is Outcome.IMPOSSIBLE
    assert "3 different experts, expected 4" in finding.reason
    for missing in (reuse_judged([drawn(60)], n_layers=2), reuse_judged([drawn(60)], n_steps=61)):
        assert missing.outcome is Outcome.INVALID
    assert judge_reuse((), reuse_expectation(60, 4, 2, 60), n_layers=2).outcome is Outcome.INVALID


SHARED = BalanceExpectation(n_threads=4, balance_ratio=1.0, piece_ratio=0.25)
ALONE = BalanceExpectation(n_threads=4, balance_ratio=4.0, returns_at_once=True)


def found(balance_ratio: float, **fields: Any) -> RoleBalance:
    """Return the balance of a role that ran long and often enough."""
    usual = {"phase": Phase.DECODE, "role": "ffn_up", "op": "MUL_MAT", "n_threads": 4, "n_runs": 100}
    return RoleBalance(balance_ratio=balance_ratio, **{**usual, "busiest_ns": 50_000.0, **fields})


def balance_judged(role: RoleBalance | None, expected: BalanceExpectation = SHARED, **fields: Any) -> Finding:
    """Judge a role of a recorder whose own time is 100 ns."""
    return judge_balance(role, expected, **{"has_ends": True, "least_thread_ns": 100, **fields})


#: What one thread computes alone, while the others wait inside the operator.
MEETING = BalanceExpectation(n_threads=4, balance_ratio=4.0)


@pytest.mark.parametrize(
    ("expected", "ratio", "outcome"),
    [
        *((SHARED, 1.0, Outcome.PASS), (SHARED, 1.5, Outcome.PASS), (SHARED, 1.6, Outcome.SLOW)),
        *((SHARED, 4.0, Outcome.SLOW), (ALONE, 3.9, Outcome.PASS), (ALONE, 3.3, Outcome.PASS)),
        *((ALONE, 1.0, Outcome.IMPOSSIBLE), (MEETING, 1.0, Outcome.PASS)),
    ],
)
def test_a_role_is_shared_as_the_rules_have_it(expected: BalanceExpectation, ratio: float, outcome: Outcome) -> None:
    assert balance_judged(found(ratio), expected).outcome is outcome


@pytest.mark.parametrize(
    ("role", "fields", "outcome", "reason"),
    [
        (None, {}, Outcome.INVALID, "no such operator"),
        (found(1.0), {"has_ends": False}, Outcome.INVALID, "no ends"),
        (found(1.0, n_threads=2), {}, Outcome.INVALID, "2 threads computed it, expected 4"),
        (found(4.0, n_runs=3), {}, Outcome.INCONCLUSIVE, "only 3 runs"),
        (found(4.0, busiest_ns=3_000.0), {}, Outcome.INCONCLUSIVE, "too short"),
        (found(4.0), {"least_thread_ns": 10_000}, Outcome.INCONCLUSIVE, "too short"),
    ],
)
def test_what_cannot_be_told_is_not_judged(
    role: RoleBalance | None, fields: dict[str, Any], outcome: Outcome, reason: str
) -> None:
    """Roles that were not recorded, too short or too rare neither pass nor fail, and say why."""
    finding = balance_judged(role, **fields)
    assert finding.outcome is outcome
    assert reason in finding.reason


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
    sources = [_tensor(f"source {at}", each.type, each.ne) for at, each in enumerate(operator.sources)]
    op, _, fused = operator.op.partition("+")
    output = _tensor(f"{name}{suffix}", operator.output.type, operator.output.ne)
    return node(op, output, *sources, fused_op=fused or None)


def _tensor(name: str, type_name: str, ne: tuple[int, ...]) -> Tensor:
    return tensor(name, ne, type=type_name)


def run_trace(subject: LlamaWorkload, *, product_factor: float = 1.0) -> EngineTrace:
    """Return a decode whose products take 20 µs and 0.1 ns a byte, attention 0.5 µs a position, the rest thread 0."""
    operators = subject.graph(Phase.DECODE)
    graph = tuple(map(traced, operators))
    works = [dimensions_of(each).work for each in traced_operators(graph)]

    def law(step: int, position: int, thread: int) -> int:
        operator = operators[position]
        if operator.op in ("MUL_MAT", "MUL_MAT_ID"):
            slower = product_factor if operator.role == "ffn_out" else 1.0
            return round((20_000 + 0.1 * operator.cost.parameter_bytes) * slower)
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


def test_a_slower_product_is_off_the_line() -> None:
    slow = trace_findings(run_trace(workload(), product_factor=4.0), workload(), n_threads=2)
    judgement = judged(slow, "decode_linearity")
    assert judgement.outcome is Outcome.SLOW
    assert "ffn_out" in judgement.reason


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


def test_what_was_not_traced_or_was_disturbed_is_invalid(findings: TraceFindings) -> None:
    """The reason is reported in either case."""
    assert judged(None, "attention_growth").reason == "too late"
    disturbed = judged(replace(findings, complaint="others took 30 %"), "attention_growth")
    assert (disturbed.outcome, disturbed.reason) == (Outcome.INVALID, "others took 30 %")


@pytest.mark.parametrize("what", ["balance/decode/unknown", "something", "expert_reuse"])
def test_a_case_that_is_none_is_invalid(findings: TraceFindings, what: str) -> None:
    judgement = judged(findings, what)
    assert (judgement.outcome, judgement.kind) == (Outcome.INVALID, "trace")
