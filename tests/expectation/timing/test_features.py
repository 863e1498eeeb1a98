"""What the time of an operator grows with."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.graph import Batch, Operator, Settings, engine_graph
from perfsuite.expectation.graphs.operator import TensorShape
from perfsuite.expectation.op_rule import distinct_experts
from perfsuite.expectation.thread_rules import SPLIT_POSITIONS
from perfsuite.expectation.timing.features import family, features, shape_cost, shape_of
from perfsuite.expectation.timing.grid import standard_shapes, typical_shapes
from perfsuite.expectation.timing.operator_shape import SCALED_ROWS, OperatorShape
from perfsuite.records.op_cost import NO_COST
from perfsuite.workload.catalog import names
from perfsuite.workload.ggml_types import GGML_TYPES

from ...catalogue_workloads import catalogue_weights

SHAPES = standard_shapes()


def test_every_kind_of_operator_is_measured() -> None:
    """The grid has each operator that a forecast of a dense model, of experts or of a state space needs."""
    needed = """MUL_MAT MUL_MAT_ID FLASH_ATTN_EXT SOFT_MAX RMS_NORM+MUL NORM L2_NORM ROPE ADD MUL MUL/scalar DIV SCALE
        SWIGLU GEGLU SWIGLU_OAI SILU GELU SIGMOID TANH EXP SOFTPLUS SQR SUM_ROWS ARGSORT REPEAT CPY CONCAT GET_ROWS
        SET_ROWS SSM_CONV SSM_SCAN GATED_DELTA_NET RWKV_WKV7"""
    assert {shape.op for shape in SHAPES} == set(needed.split())


def test_every_point_is_of_whole_blocks_and_there_once() -> None:
    """A point that occurred twice would be seen by the fit that is meant to leave it out."""
    assert len(set(SHAPES)) == len(SHAPES)
    assert [shape for shape in SHAPES if not GGML_TYPES[shape.type.upper()].fits(shape.n_inner)] == []


@pytest.mark.parametrize("name", sorted({family(shape) for shape in SHAPES}), ids="-".join)
def test_there_is_more_than_one_level_of_rows(name: tuple[str, str]) -> None:
    """Each kind is measured at one row, at several hundred and between; the fewest and the most are typical of it."""
    levels = {shape.n_tokens for shape in SHAPES if family(shape) == name}
    assert min(levels) == 1
    assert max(levels) >= 512
    assert len(levels) >= 4
    typical = [shape for shape in typical_shapes(SHAPES) if family(shape) == name]
    assert [shape.n_tokens for shape in typical] == [1, max(levels)]
    assert set(typical) <= set(SHAPES)


def test_the_points_of_a_fit_tell_its_terms_apart() -> None:
    """At each level there are enough points for every term that one of them has; experts of one token have one less."""
    grouped = defaultdict(list)
    for shape in SHAPES:
        grouped[family(shape), shape.n_tokens].append(shape)
    for ((kind, _), n_tokens), members in grouped.items():
        terms = np.asarray([features(shape, shape.n_tokens, 2) for shape in members])
        terms = terms[:, terms.max(axis=0) > 0.0]
        expected = terms.shape[1] - (kind == "MUL_MAT_ID" and n_tokens == 1)
        assert np.linalg.matrix_rank(terms / terms.max(axis=0)) == expected, (kind, n_tokens)
        assert len(members) > expected, (kind, n_tokens)


PREFILL = Batch(n_tokens=48, n_outputs=1, n_used=80, n_ctx=512)
DECODE = Batch(n_tokens=1, n_outputs=1, n_used=300, n_ctx=512)

#: Role of fused attention.
FLASH = "flash_attn_ext"

#: Roles of products of rows with one number each: of the experts' rows with their weights, of the shared with its gate.
SCALED_ROLES = ("ffn_moe_weighted", "ffn_shexp_out")


def graph(model: str, batch: Batch, settings: Settings | None = None) -> tuple[Operator, ...]:
    weights = catalogue_weights(model)
    return engine_graph(weights.architecture, weights.tensor_types, batch, settings or Settings())


def shape_by_role(model: str, role: str, batch: Batch, settings: Settings | None = None) -> OperatorShape:
    operator = next(each for each in graph(model, batch, settings) if each.role == role)
    return shape_of(operator, batch)


@pytest.mark.parametrize("name", names())
def test_every_operator_of_a_graph_has_a_shape(name: str) -> None:
    """It has terms and the operator's FLOPs, a product 2 k m n over all heads or experts; attention's are by position.

    Prefill with one output and with all, and decode, with flash attention where there is any, and without.
    """
    can_flash = catalogue_weights(f"{name}-l2-q4_0").architecture.family.flash_attention
    for flash_attn, batch in product({can_flash, False}, (PREFILL, replace(PREFILL, n_outputs=48), DECODE)):
        for operator in graph(f"{name}-l2-q4_0", batch, Settings(flash_attn=flash_attn)):
            found = shape_of(operator, batch)
            assert found.op == (SCALED_ROWS if operator.op == "MUL" and operator.role in SCALED_ROLES else operator.op)
            dispatch, *rest = features(found, found.n_tokens, 2)
            assert dispatch == 1.0
            assert min(rest) >= 0.0 < max(rest), operator
            assert found.n_past < batch.n_used
            assert found.op == "FLASH_ATTN_EXT" or shape_cost(found).flops == operator.cost.flops, operator
            if found.op.startswith("MUL_MAT"):
                times = max(1, found.n_heads) * max(1, found.n_used)
                assert 2 * found.n_inner * found.n_outer * found.n_tokens * times == operator.cost.flops, operator


SMALL, LATENT, ROUTED = "smollm2-135m-q8_0", "deepseek-v2-lite-l3-q4_0", "qwen1.5-moe-a2.7b-l2-q4_0"
EXPERTS = {"n_experts": 60, "n_used": 4}


@pytest.mark.parametrize(
    ("model", "role", "batch", "flash_attn", "kind", "sizes"),
    [
        (SMALL, "ffn_gate", PREFILL, True, "MUL_MAT q8_0", {"n_inner": 576, "n_outer": 1536}),
        (SMALL, "result_output", PREFILL, True, "MUL_MAT q8_0", {"n_inner": 576, "n_outer": 49152, "n_tokens": 1}),
        (SMALL, "kq", DECODE, False, "MUL_MAT f16", {"n_inner": 64, "n_outer": 512, "n_heads": 9, "n_kv_heads": 3}),
        (SMALL, "kqv", DECODE, False, "MUL_MAT f16", {"n_inner": 512, "n_outer": 64, "n_heads": 9, "n_kv_heads": 3}),
        (SMALL, "kq_soft_max", PREFILL, False, "SOFT_MAX f32", {"n_inner": 256, "n_heads": 9}),
        (SMALL, "embd", PREFILL, True, "GET_ROWS q8_0", {"n_inner": 576, "n_outer": 1}),
        (SMALL, "Qcur_rope", PREFILL, True, "ROPE f32", {"n_inner": 64, "n_heads": 9}),
        (SMALL, "ffn_swiglu", PREFILL, True, "SWIGLU f32", {"n_inner": 1536}),
        ("qwen3-0.6b-l2-q8_0", "Qcur_normed", PREFILL, True, "RMS_NORM+MUL f32", {"n_inner": 128, "n_tokens": 48 * 16}),
        (ROUTED, "ffn_moe_gate", PREFILL, True, "MUL_MAT_ID q4_0", {"n_inner": 2048, "n_outer": 1408, **EXPERTS}),
        (ROUTED, "ffn_moe_weighted", PREFILL, True, f"{SCALED_ROWS} f32", {"n_inner": 4 * 2048}),
        (ROUTED, "ffn_shexp_out", DECODE, True, f"{SCALED_ROWS} f32", {"n_inner": 2048}),
        (LATENT, "q_nope_absorbed", DECODE, True, "MUL_MAT q4_0", {"n_inner": 128, "n_outer": 512 * 16}),
        (LATENT, "fattn_mla", PREFILL, True, "MUL_MAT q4_0", {"n_inner": 512, "n_outer": 128 * 16}),
    ],
)
def test_the_sizes_of_an_operator(
    model: str, role: str, batch: Batch, flash_attn: bool, kind: str, sizes: dict[str, int]
) -> None:
    """A product with weights has no heads and the rows that are wanted, attention's has them; a gather is of its rows,
    a norm of heads has a row for each, experts those of a token, and what no rule knows the elements of a token.
    A matrix for each head is one with as many rows; the rows of a token's experts are scaled by one number each.
    """
    op, type = kind.split()
    found = shape_by_role(model, role, batch, Settings(flash_attn=flash_attn))
    assert found == OperatorShape(op=op, type=type, **{"n_tokens": batch.n_tokens, **sizes})


@pytest.mark.parametrize(("n_used", "n_past"), [(1, 0), (2, 1), (100, 99), (256, 255), (300, 299), (512, 511)])
def test_attention_counts_the_positions_that_are_used(n_used: int, n_past: int) -> None:
    """The engine skips what is masked, so that padding of the cache counts nothing; of 80 a prompt of 48 has 32."""
    found = shape_by_role(SMALL, FLASH, replace(DECODE, n_used=n_used))
    assert found == replace(attention(1, n_past), n_heads=9, n_kv_heads=3)
    assert shape_by_role(SMALL, FLASH, PREFILL).n_past == 32


def test_a_sliding_window_holds_no_more_than_its_cells() -> None:
    """Where the cache keeps a window only, what was before it does not count."""
    batch = Batch(n_tokens=1, n_outputs=1, n_used=7000, n_ctx=8192, n_ubatch=512)
    whole, window = (
        shape_by_role("gemma-2-2b-l2-q8_0", FLASH, batch, Settings(swa_full=full)) for full in (True, False)
    )
    assert whole.n_past == 6999
    assert window.n_past == 4096 + 512 - 1


def test_the_type_of_the_cache_is_that_of_attention() -> None:
    """A quantised cache is another fit, as is what is stored into it."""
    settings = Settings(type_k="q8_0", type_v="q8_0")
    stored = [each for each in graph("smollm2-135m-l2-q8_0", PREFILL, settings) if each.op == "SET_ROWS"]
    assert shape_by_role("smollm2-135m-l2-q8_0", FLASH, PREFILL, settings).type == "q8_0"
    assert {shape_of(each, PREFILL) for each in stored} == {
        OperatorShape(op="SET_ROWS", type="q8_0", n_inner=192, n_outer=1, n_tokens=48)
    }


def test_a_product_of_rows_with_rows_is_not_scaled() -> None:
    """The weights of a norm are as wide as its rows, and a single column has nothing to repeat its number over."""
    wide, column = (TensorShape(type="f32", ne=(n, 48, 1, 1)) for n in (576, 1))
    for output, second in ((wide, wide), (column, column)):
        operator = Operator(role="norm_w", layer=None, op="MUL", output=output, sources=(output, second), cost=NO_COST)
        assert shape_of(operator, PREFILL).op == "MUL"


def attention(n_tokens: int, n_past: int, *, type: str = "f16") -> OperatorShape:
    """Attention of 8 heads of 64 elements over a cache of 2."""
    return OperatorShape(
        op="FLASH_ATTN_EXT", type=type, n_inner=64, n_tokens=n_tokens, n_heads=8, n_kv_heads=2, n_past=n_past
    )


def terms(shape: OperatorShape, n_threads: int = 2) -> tuple[float, ...]:
    return features(shape, shape.n_tokens, n_threads)


SCORES = OperatorShape(op="MUL_MAT", type="f16", n_inner=64, n_outer=256, n_heads=8, n_kv_heads=2)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (OperatorShape(op="MUL_MAT", type="q8_0", n_inner=512, n_outer=256, n_tokens=8), (512 * 256, 512, 256)),
        (SCORES, (8 * 64 * 256, 8 * 256)),
        (OperatorShape(op="ROPE", type="f32", n_inner=64, n_tokens=9, n_heads=4), (64, 256)),
        (OperatorShape(op="SOFT_MAX", type="f32", n_inner=64, n_tokens=9, n_heads=4), (256,)),
        (OperatorShape(op="ADD", type="f32", n_inner=64, n_tokens=9), (64, 512)),
    ],
)
def test_terms_by_hand(shape: OperatorShape, expected: tuple[int, ...]) -> None:
    """A product with weights has its area, its columns and its rows; attention's has a head's, times the heads.

    RoPE has the angles of a row and its elements over all heads, softmax those elements alone.
    """
    assert terms(shape) == (1.0, *expected)


def test_the_experts_of_a_batch_are_those_of_draws() -> None:
    """The formula is the mean over random draws: 6 of 64 for each of 20 tokens."""
    draw = random.Random(5)
    counts = [len({each for _ in range(20) for each in draw.sample(range(64), 6)}) for _ in range(2000)]
    assert distinct_experts(64, 6, 20) == pytest.approx(sum(counts) / len(counts), rel=0.01)


def test_experts_are_read_once_and_computed_for_each_token() -> None:
    """One term is the area of all experts that are read, the other that of a token's own."""
    shape = OperatorShape(op="MUL_MAT_ID", type="q8_0", n_inner=128, n_outer=32, n_tokens=10, n_experts=8, n_used=2)
    assert terms(shape) == pytest.approx((1.0, 128 * 32 * distinct_experts(8, 2, 10), 128 * 32 * 2))


@given(st.integers(2, 600), st.integers(0, 3000))
def test_a_prompt_sees_half_of_itself(n_tokens: int, n_past: int) -> None:
    """Each token of a batch sees what was before and itself; the term counts their mean."""
    positions = sum(n_past + at + 1 for at in range(n_tokens)) / n_tokens
    assert terms(attention(n_tokens, n_past)) == pytest.approx(
        (1.0, 8.0, 8 * positions, 8 * positions * 64, 2 * positions * 64, 0.0)
    )


@pytest.mark.parametrize(
    ("n_past", "n_threads", "type", "positions"),
    [
        (0, 2, "f16", 1),
        (255, 2, "f16", 256),
        (256, 2, "f16", 512),
        (299, 2, "f16", 512),
        (299, 3, "f16", 513),
        (99, 1, "f16", 100),
        (599, 1, "f16", 600),
        (599, 2, "f16", 768),
        (599, 4, "f16", 768),
        (599, 2, "q8_0", 600),
        (299, 2, "q8_0", 300),
    ],
)
def test_a_single_query_is_split_over_the_padded_cache(n_past: int, n_threads: int, type: str, positions: int) -> None:
    """From 512 padded positions on the busiest thread's share counts, masked ones included; before, those in use."""
    assert SPLIT_POSITIONS == 512
    found = terms(attention(1, n_past, type=type), n_threads)
    assert found == (1.0, 8.0, 8.0 * positions, 8.0 * positions * 64, 2.0 * positions * 64, 0.0)


def test_what_is_left_of_a_head_takes_an_element_at_a_time() -> None:
    """Heads of 96 are a vector of 64 halves and 32 elements more, each for every head and position."""
    assert terms(replace(attention(1, 99), n_inner=96))[-1] == 8.0 * 100 * 32
