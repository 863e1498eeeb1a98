"""How the engine's rules share an operator."""

from __future__ import annotations

import pytest

from perfsuite.expectation.graph import Operator
from perfsuite.expectation.graphs.operator import shape
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.trace_cases import expected_balances, judged_roles, operator_balance
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import NO_COST

from ..catalogue_workloads import catalogue_workload


def workload(name: str = "smollm2-135m-l2-q8_0", scenario: str = "p64-g24") -> LlamaWorkload:
    return catalogue_workload(name, scenario)


def test_roles_of_a_workload_are_expected() -> None:
    """A decode step's activations are one thread's, its products all threads'; a prefill shares both."""
    decode = expected_balances(workload(), Phase.DECODE, 2)
    prefill = expected_balances(workload(), Phase.PREFILL, 2)
    assert (decode["ffn_swiglu"].balance_ratio, decode["ffn_up"].balance_ratio) == (2.0, 1.0)
    assert decode["ffn_swiglu"].is_on_one_thread
    assert prefill["attn_norm"].balance_ratio == 1.0
    assert 1.0 < prefill["ffn_swiglu"].balance_ratio < 2.0  # the last layer has one row left


def test_roles_that_no_run_can_show_are_not_judged() -> None:
    """What moves a few KiB, or runs once in a prefill, has an expectation and is not judged."""
    subject = workload("smollm2-135m-q8_0")
    decode = judged_roles(subject, Phase.DECODE, 2)
    prefill = judged_roles(subject, Phase.PREFILL, 2)
    assert {"ffn_up", "ffn_swiglu", "flash_attn_ext", "result_output"} <= set(decode)
    assert not {"ffn_inp", "Kcur_rope", "cache_k", "attn_norm"} & set(decode)
    assert {"ffn_inp", "ffn_swiglu", "Kcur_rope"} <= set(prefill)
    assert not {"result_output", "result_norm", "embd"} & set(prefill)


def test_batches_without_outputs_take_no_role_away() -> None:
    """A prompt of several batches, of which the last alone gives logits, has the roles of a short one."""
    short, long = (expected_balances(workload(scenario=each), Phase.PREFILL, 2) for each in ("p64-g1", "p1100-g1"))
    assert set(short) == set(long)


def test_attention_is_expected_over_the_steps() -> None:
    """A decode that crosses into 512 positions mixes both ways of cutting."""
    short = expected_balances(workload(scenario="p64-g24"), Phase.DECODE, 2)["flash_attn_ext"]
    crossing = expected_balances(workload(scenario="p200-g200"), Phase.DECODE, 2)["flash_attn_ext"]
    assert short.balance_ratio == pytest.approx(10 / 9)
    assert crossing.balance_ratio > short.balance_ratio


def operator(op: str, output: tuple[int, ...], *sources: tuple[int, ...], type: str = "f32") -> Operator:
    """Return an operator of shapes; the second source has the type."""
    types = ["f32", *[type] * 3]
    shapes = tuple(shape(kind, *ne) for kind, ne in zip(types, sources, strict=False))
    return Operator(role="role", op=op, layer=0, output=shape("f32", *output), sources=shapes, cost=NO_COST)


@pytest.mark.parametrize(
    ("found", "n_threads", "ratio"),
    [
        (operator("ADD", (576, 1), (576, 1)), 2, 2.0),
        (operator("ADD", (576, 31), (576, 31)), 2, 32 / 31),
        (operator("ROPE", (64, 9, 1), (64, 9, 1)), 2, 10 / 9),
        (operator("ROPE", (64, 9, 1), (64, 9, 1)), 4, 12 / 9),
        (operator("SOFT_MAX", (256, 1, 9), (256, 1, 9)), 2, 2.0),
        (operator("SOFT_MAX", (256, 8, 9), (256, 8, 9)), 2, 1.0),
        (operator("SET_ROWS", (192, 512), (192, 5)), 2, 6 / 5),
        (operator("SUM_ROWS", (1, 64), (4, 64)), 4, 4.0),
        (operator("CONCAT", (192, 16, 3), (128, 16, 3)), 2, 4 / 3),
        (operator("CONT", (576, 1), (64, 9, 1)), 3, 1.0),
    ],
)
def test_rows_are_given_out_in_equal_parts(found: Operator, n_threads: int, ratio: float) -> None:
    """The busiest thread has the rows rounded up; what is not cut is one thread's alone."""
    expected = operator_balance(found, n_threads, 64)
    assert expected is not None
    assert expected.balance_ratio == pytest.approx(ratio, abs=0.005)
    assert expected.limit_ratio == expected.balance_ratio
    assert expected.is_on_one_thread == (ratio == n_threads)


@pytest.mark.parametrize(
    ("found", "ratio", "waits"),
    [
        (operator("SIGMOID", (8, 5), (8, 5)), 6 / 5, False),
        (operator("ADD_ID", (8, 2, 1), (8, 2, 1), (8, 4), (2, 1)), 1.0, False),
        (operator("L2_NORM", (8, 3, 4), (8, 3, 4)), 4 / 3, False),
        (operator("MEAN", (1, 4), (8, 4)), 2.0, False),
        (operator("TOP_K", (2, 5), (8, 5)), 6 / 5, False),
        (operator("SSM_CONV", (7, 4), (7, 7), (4, 7)), 8 / 7, False),
        (operator("SSM_SCAN", (99,), (4, 8, 5), (8, 5, 2)), 6 / 5, False),
        (operator("RWKV_WKV6", (40, 10), (8, 5, 2), (8, 5, 2)), 6 / 5, True),
        (operator("RWKV_WKV7", (40, 10), (8, 5, 2), (8, 5, 2)), 6 / 5, False),
        (operator("SOLVE_TRI", (3, 4, 5), (4, 4, 5), (3, 4, 5)), 16 / 15, False),
        (operator("LIGHTNING_INDEXER", (7, 2), (8, 4, 2)), 8 / 7, False),
        (operator("IM2COL", (12, 5), (3, 4), (7, 4)), 1.0, False),
        (operator("IM2COL", (3, 5, 4), (3, 1, 4), (7, 1, 4)), 2.0, False),
        (operator("IM2COL", (45, 5, 5), (3, 3, 5, 6), (7, 7, 5)), 6 / 5, False),
        (operator("ARANGE", (7,)), 8 / 7, False),
        (operator("ROLL", (8, 4), (8, 4)), 6 / 4, False),
        (operator("WIN_PART", (8, 4), (8, 4)), 1.0, False),
        (operator("COUNT_EQUAL", (1,), (8, 3), (8, 3)), 4 / 3, True),
    ],
)
def test_rarer_operators_are_given_out_in_rows(found: Operator, ratio: float, waits: bool) -> None:
    """Heads that have a state, channels of a kernel, columns and positions are such rows; some threads meet first."""
    expected = operator_balance(found, 2, 64)
    assert expected is not None
    assert expected.balance_ratio == pytest.approx(ratio)
    assert expected.returns_at_once is not waits


def test_a_delta_net_is_taken_head_by_head() -> None:
    """Of 3 heads one thread has 2; 32 of them are cut into 8 pieces of 4, of which the last may be one thread's."""
    few, many = (operator("GATED_DELTA_NET", (8, n), *[(8, n, 2)] * 3) for n in (3, 32))
    found, shared = operator_balance(few, 2, 64), operator_balance(many, 2, 64)
    assert found is not None
    assert shared is not None
    assert found.balance_ratio == pytest.approx(4 / 3)
    assert (shared.balance_ratio, shared.limit_ratio) == (1.0, 1.25)


def test_products_are_taken_piece_by_piece() -> None:
    """A large product is shared evenly except its last piece; a small one is cut along its longer side."""
    large = operator_balance(operator("MUL_MAT", (1536, 1), (576, 1536), (576, 1)), 2, 64)
    small = operator_balance(operator("MUL_MAT", (3, 1), (576, 3), (576, 1)), 2, 64)
    assert large is not None
    assert (large.balance_ratio, large.limit_ratio, large.is_on_one_thread) == (1.0, 1.25, False)
    assert small is not None
    assert small.balance_ratio == pytest.approx(4 / 3)


def attention(n_positions: int, n_heads: int, n_tokens: int = 1, type: str = "f16") -> Operator:
    cache = (64, n_positions, 3)
    return operator("FLASH_ATTN_EXT", (64, n_heads, n_tokens), (64, n_tokens, n_heads), cache, cache, type=type)


@pytest.mark.parametrize(
    ("found", "n_used", "ratio"),
    [
        (attention(256, 9), 100, 10 / 9),
        (attention(512, 9), 300, 2 * 256 / 300),
        (attention(512, 9), 512, 1.0),
        (attention(1024, 8, type="q8_0"), 600, 1.0),
    ],
)
def test_attention_is_cut_by_heads_or_along_the_cache(found: Operator, n_used: int, ratio: float) -> None:
    """Nine heads make five and four; of 512 positions with 300 in use one thread sees 256; only floats are cut so."""
    expected = operator_balance(found, 2, n_used)
    assert expected is not None
    assert expected.balance_ratio == pytest.approx(ratio)
    assert (expected.limit_ratio > expected.balance_ratio) is (n_used in (100, 600))
