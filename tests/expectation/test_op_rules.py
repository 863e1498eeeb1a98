"""The table of operators against the engine's own list, and its rows against each other.

What one operator costs, by the written convention.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.graph import Batch
from perfsuite.expectation.graphs.operator import Operator, TensorShape, row_bytes
from perfsuite.expectation.graphs.operator import shape as tensor
from perfsuite.expectation.op_rule import experts_read
from perfsuite.expectation.op_rules import MEASURABLE, OPERATORS, WITHOUT_ROW, OpRule, cost_of, rule_of
from perfsuite.expectation.timing.features import features, lone_operator, shape_cost, shape_of, standing_in
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.expectation.trace_cases import operator_balance
from perfsuite.measure.engine import find_engine
from perfsuite.records.op_cost import COST_FIELDS, NO_COST, OpCost
from perfsuite.workload.ggml_types import GGML_TYPES

from ..synthetic_calibration import points_of

BATCH = Batch(n_tokens=5, n_outputs=5, n_used=8, n_ctx=256)

#: Sizes that any operator has, and the least that there are: one of each, and none but a row of one.
USUAL = OperatorShape(
    op="?",
    type="f32",
    n_inner=64,
    n_outer=32,
    n_tokens=5,
    n_heads=4,
    n_kv_heads=2,
    n_past=3,
    n_experts=4,
    n_used=2,
)
LEAST = OperatorShape(op="?", type="f32", n_inner=1)
ONES = replace(LEAST, n_outer=1, n_heads=1, n_kv_heads=1, n_experts=1, n_used=1)


def names_of(header: str, kind: str) -> set[str]:
    """Return the names in one of the header's enumerations, their number aside."""
    found = re.search(rf"enum ggml_{kind} \{{(.*?)\}};", header, re.DOTALL)
    assert found is not None
    return set(re.findall(rf"GGML_{kind.upper()}_(\w+)", found[1])) - {"COUNT"}


def test_every_operator_of_the_engine_has_a_row() -> None:
    """What the installed header lists is in the table, or among what no graph of inference computes."""
    paths = (folder / "ggml.h" for folder in find_engine().include_dirs)
    header = next(path for path in paths if path.is_file()).read_text(encoding="utf-8")
    listed = (names_of(header, "op") - {"UNARY", "GLU"}) | names_of(header, "unary_op") | names_of(header, "glu_op")
    assert listed - set(OPERATORS) == WITHOUT_ROW
    assert not WITHOUT_ROW & set(OPERATORS)


@pytest.mark.parametrize("rule", OPERATORS.values(), ids=lambda rule: rule.name)
def test_an_operator_has_one_row(rule: OpRule) -> None:
    assert rule_of(rule.name) is rule
    assert rule.stand_in in MEASURABLE


def graph_operator(shape: OperatorShape) -> Operator:
    """Return an operator of a graph that has the tensors of one that stands alone."""
    output, *sources = lone_operator(shape).tensors
    return Operator(
        role="x", op=shape.op.partition("/")[0], layer=0, output=output, sources=tuple(sources), cost=NO_COST
    )


#: What a graph holds in another layout than the bench: counted by elements, by a mean of sizes, or by what it keeps.
OTHERWISE = ("MUL_MAT", "MUL/scalar", "FLASH_ATTN_EXT", "GET_ROWS", "SET_ROWS", "SOFT_MAX")


@pytest.mark.parametrize("op", sorted(MEASURABLE - set(OTHERWISE)))
@pytest.mark.parametrize("sizes", [USUAL, ONES], ids=["usual", "ones"])
def test_sizes_are_found_again(op: str, sizes: OperatorShape) -> None:
    operator = graph_operator(replace(sizes, op=op))
    found = shape_of(operator, BATCH)
    again = lone_operator(found).tensors
    assert again[0].n_elements == operator.output.n_elements
    assert [each.n_elements for each in again[1:]] == [each.n_elements for each in operator.sources]
    assert shape_cost(found).moved_bytes == cost_of(op, operator.output, operator.sources).moved_bytes


@pytest.fixture(scope="module")
def times() -> OperatorTimes:
    return OperatorTimes(points_of(standard_shapes()), n_threads=2)


@pytest.mark.parametrize("op", sorted(OPERATORS))
@pytest.mark.parametrize("sizes", [USUAL, ONES, LEAST], ids=["usual", "ones", "least"])
def test_any_operator_is_forecast(times: OperatorTimes, op: str, sizes: OperatorShape) -> None:
    """Each has terms above nothing, a cost and a time, whether it was measured or another stands in for it."""
    shape = replace(sizes, op=op)
    dispatch, *rest = features(shape, shape.n_tokens, 2)
    assert dispatch == 1.0
    assert min(rest) >= 0.0
    assert max(rest) > 0.0 or sizes is LEAST
    assert shape_cost(shape).moved_bytes > 0
    assert 0.0 < times.time(shape).time_ns < float("inf")


@pytest.mark.parametrize("op", sorted(set(OPERATORS) - {"MUL/scalar", "RMS_NORM+MUL"}))
def test_an_empty_operator_has_the_least_sizes(op: str) -> None:
    """A batch that gives no logits leaves operators of no rows, which have sizes, and nothing that threads share."""
    operator = graph_operator(replace(USUAL, op=op))
    empty = replace(
        operator,
        output=replace(operator.output, ne=(operator.output.ne[0], 0, 1, 1)),
        sources=tuple(replace(each, ne=(each.ne[0], 0, 1, 1)) for each in operator.sources),
    )
    if op not in ("MUL_MAT", "MUL_MAT_ID", "FLASH_ATTN_EXT"):  # whose weights are never empty
        assert shape_of(empty, BATCH).n_tokens >= 1
    assert operator_balance(empty, 2, 8) is None


def test_a_stand_in_takes_the_work_of_what_it_stands_for() -> None:
    """A scan of 64 channels of 16 states is as many elements as its FLOPs are pairs; a gated unit has its own rows."""
    scan = OperatorShape(op="SSM_SCAN", type="f32", n_inner=64, n_outer=16, n_tokens=8, n_heads=2, n_kv_heads=1)
    cost = shape_cost(scan)
    n_elements = max(cost.moved_bytes // 12, cost.flops // 2)
    assert standing_in(scan, "MUL", "f32") == OperatorShape(op="MUL", type="f32", n_inner=n_elements // 8, n_tokens=8)
    gated = OperatorShape(op="REGLU", type="f32", n_inner=64, n_tokens=8)
    assert standing_in(gated, "SWIGLU", "f32") == replace(gated, op="SWIGLU")


_COUNT = st.integers(0, 1 << 40)
_COSTS = st.builds(OpCost, **dict.fromkeys(COST_FIELDS, _COUNT))


@given(_COSTS, _COSTS, st.integers(0, 5))
def test_costs_add_up_in_any_order(one: OpCost, other: OpCost, times: int) -> None:
    assert one + other == other + one
    assert one * times == sum([one] * times, start=NO_COST)
    assert one.moved_bytes == one.read_bytes + one.written_bytes
    assert one.kv_bytes == one.kv_read_bytes + one.kv_written_bytes


_BLOCK = {name.lower(): (kind.block_values, kind.block_bytes) for name, kind in GGML_TYPES.items()}
_WEIGHT_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q6_k")

_OPERATORS = (
    *("MUL_MAT", "MUL_MAT_ID", "FLASH_ATTN_EXT", "SOFT_MAX", "RMS_NORM", "RMS_NORM+MUL", "NORM", "ROPE", "ADD", "MUL"),
    *("SWIGLU", "GEGLU", "TANH", "SCALE", "GET_ROWS", "SET_ROWS", "CONT", "CPY", "CONCAT", "REPEAT", "ARGSORT"),
    "SUM_ROWS",
)

_SIZE = st.integers(1, 64)


@st.composite
def operators(draw: st.DrawFn) -> tuple[str, TensorShape, tuple[TensorShape, ...]]:
    """Draw an operator that stands alone, with its output and what it reads."""
    type_name = draw(st.sampled_from(_WEIGHT_TYPES))
    n_kv_heads, n_used, *sizes = (draw(_SIZE) for _ in range(7))
    shape = OperatorShape(
        op=draw(st.sampled_from(_OPERATORS)),
        type=type_name,
        n_inner=sizes[0] * _BLOCK[type_name][0],
        n_outer=sizes[1],
        n_tokens=sizes[2],
        n_heads=n_kv_heads * sizes[3],
        n_kv_heads=n_kv_heads,
        n_past=sizes[4],
        n_experts=n_used + sizes[3],
        n_used=n_used,
    )
    output, *sources = lone_operator(shape).tensors
    return shape.op, output, tuple(sources)


def _wider(of: TensorShape, dimension: int) -> TensorShape:
    return tensor(of.type, *(size * 2 if at == dimension else size for at, size in enumerate(of.ne)))


@given(operators(), st.booleans())
def test_costs_are_counts(operator: tuple[str, TensorShape, tuple[TensorShape, ...]], is_weight: bool) -> None:
    """FLOPs and bytes are integers of 0 or more, something is written, and parameters are part of what is read."""
    op, output, sources = operator
    cost = cost_of(op, output, sources, is_weight=is_weight)
    figures = (cost.flops, cost.read_bytes, cost.written_bytes, cost.parameter_bytes)
    assert all(isinstance(figure, int) and figure >= 0 for figure in figures)
    assert cost.written_bytes > 0
    assert cost.parameter_bytes <= cost.read_bytes
    assert (cost.parameter_bytes > 0) == is_weight


@given(operators(), st.integers(0, 3))
def test_a_larger_operator_costs_no_less(
    operator: tuple[str, TensorShape, tuple[TensorShape, ...]], dimension: int
) -> None:
    op, output, sources = operator
    small = cost_of(op, output, sources)
    large = cost_of(op, _wider(output, dimension), [_wider(source, dimension) for source in sources])
    assert large.flops >= small.flops
    assert large.read_bytes >= small.read_bytes
    assert large.written_bytes >= small.written_bytes


@given(st.sampled_from(sorted(_BLOCK)), st.integers(1, 1000))
def test_rows_are_linear_in_their_blocks(type_name: str, n_blocks: int) -> None:
    """In either case of the name; a tensor is its rows."""
    elements, n_bytes = _BLOCK[type_name]
    assert row_bytes(type_name, n_blocks * elements) == row_bytes(type_name.upper(), n_blocks * elements)
    assert row_bytes(type_name, n_blocks * elements) == n_blocks * n_bytes
    assert tensor(type_name, n_blocks * elements, 3, 2).n_bytes == 6 * n_blocks * n_bytes


_ROWS = tensor("f32", 64, 10)
_CACHE = tensor("f16", 64, 256, 3)


@pytest.mark.parametrize(
    ("op", "output", "sources", "is_weight", "expected"),
    [
        pytest.param(
            *("MUL_MAT", tensor("f32", 128, 3), [tensor("q8_0", 64, 128), tensor("f32", 64, 3)], True),
            OpCost(flops=49152, read_bytes=128 * 68 + 768, written_bytes=1536, parameter_bytes=128 * 68),
            id="two FLOPs for each pair of a product",
        ),
        *(
            pytest.param(
                *("GET_ROWS", tensor("f32", 32, 3), [tensor("q8_0", 32, n_rows), tensor("i32", 3)], True),
                OpCost(read_bytes=3 * 34 + 12, written_bytes=384, parameter_bytes=3 * 34),
                id=f"a gather moves its rows and not the table of {n_rows}",
            )
            for n_rows in (10, 10**6)
        ),
        *(
            pytest.param(
                *("SET_ROWS", tensor("f16", 8, n), [tensor("f32", 8, 2), tensor("i64", 2), tensor("f16", 8, n)], False),
                OpCost(read_bytes=64 + 16, written_bytes=32),
                id=f"a scatter moves its rows and not the cache of {n}",
            )
            for n in (256, 4096)
        ),
        pytest.param(
            *("CPY", tensor("f16", 64, 3), [tensor("f32", 64, 3), tensor("f16", 64, 3)], False),
            OpCost(read_bytes=768, written_bytes=384),
            id="the copied tensor alone is read",
        ),
        pytest.param(
            *("FWHT", _ROWS, [tensor("f32", 64, 64), _ROWS], False),
            OpCost(flops=7 * 640, read_bytes=2560, written_bytes=2560),
            id="rows are halved six times and scaled, the matrix unread",
        ),
        pytest.param(
            *("MUL_MAT_ID", tensor("f32", 32, 4, 1)),
            [tensor("q8_0", 64, 32, 60), tensor("f32", 64, 1, 1), tensor("i32", 4, 1)],
            *(True, OpCost(flops=4 * 4096, read_bytes=4 * 2176 + 272, written_bytes=512, parameter_bytes=4 * 2176)),
            id="one token reads and multiplies the experts that it chose",
        ),
        pytest.param(
            *("FLASH_ATTN_EXT", tensor("f32", 64, 9, 5)),
            [tensor("f32", 64, 5, 9), _CACHE, _CACHE, tensor("f16", 256, 5)],
            False,
            OpCost(
                flops=9 * 5 * 256 * (2 * (64 + 64) + 6),
                read_bytes=4 * 64 * 45 + 2 * 2 * 64 * 768 + 2 * 256 * 5,
                written_bytes=4 * 64 * 45,
            ),
            id="attention counts masked positions for every head",
        ),
    ],
)
def test_a_cost_by_hand(
    op: str, output: TensorShape, sources: list[TensorShape], is_weight: bool, expected: OpCost
) -> None:
    assert cost_of(op, output, sources, is_weight=is_weight) == expected


def activations(*ne: int) -> TensorShape:
    return tensor("f32", *ne)


#: Two tokens of an attention of 4 heads of 8, whose states are 8 x 8 each.
_HEADS, _STATES = activations(8, 4, 2), activations(256, 1)
_RECURRENT = activations(32, 2 + 8)


@pytest.mark.parametrize(
    ("op", "output", "sources", "flops", "read_bytes"),
    [
        *((op, activations(8, 3), [activations(8, 3)], 24, 96) for op in ("SQRT", "CUMSUM")),
        *((op, activations(8, 3), [activations(8, 3)] * 2, 24, 192) for op in ("SUB", "DIV")),
        ("SIGMOID", activations(8), [activations(8)], 4 * 8, 32),
        ("SOFTPLUS", activations(8), [activations(8)], 4 * 8, 32),
        ("SWIGLU_OAI", activations(8), [activations(8)] * 2, 9 * 8, 64),
        ("SWIGLU", activations(8), [activations(16)], 5 * 8, 64),
        ("REGLU", activations(8), [activations(8)] * 2, 2 * 8, 64),
        ("L2_NORM", activations(8, 3), [activations(8, 3)], 3 * 24, 96),
        ("GROUP_NORM", activations(8, 3), [activations(8, 3)], 5 * 24, 96),
        ("SUM", activations(1), [activations(8, 3)], 24, 96),
        ("MEAN", activations(1, 3), [activations(8, 3)], 24 + 3, 96),
        ("ARGMAX", tensor("i32", 3), [activations(8, 3)], 24, 96),
        ("TOP_K", tensor("i32", 4, 3), [activations(8, 3)], 24 + 2 * 12, 96),
        ("ARGSORT", tensor("i32", 8, 3), [activations(8, 3)], 3 * 24, 96),
        ("FILL", activations(8, 3), [activations(8, 3)], 0, 0),
        ("ARANGE", activations(8), [], 16, 0),
        ("ACC", activations(8, 3), [activations(8, 3), activations(8)], 8, 96 + 32),
        (
            "ADD_ID",
            activations(8, 2, 1),
            [activations(8, 2, 1), activations(8, 9), tensor("i32", 2, 1)],
            16,
            64 + 64 + 8,
        ),
        ("OUT_PROD", activations(8, 3), [activations(8, 5), activations(3, 5)], 2 * 5 * 24, 160 + 60),
        ("SOLVE_TRI", activations(3, 4), [activations(4, 4), activations(3, 4)], 5 * 12, 64 + 48),
        ("IM2COL", tensor("f16", 12, 5), [tensor("f16", 3, 4), activations(7, 4)], 0, 4 * 28),
        ("POOL_1D", activations(4, 3), [activations(8, 3)], 24, 96),
        ("CONV_2D", activations(5, 5, 6, 1), [activations(3, 3, 2, 6), activations(7, 7, 2)], 2 * 18 * 150, 432 + 392),
        ("CONV_2D_DW", activations(5, 5, 2), [activations(3, 3, 1, 2), activations(7, 7, 2)], 2 * 9 * 50, 72 + 392),
        (
            *("CONV_3D", activations(5, 5, 5, 6), [activations(3, 3, 3, 12), activations(7, 7, 7, 2)]),
            *(2 * 27 * 2 * 750, 4 * (324 + 686)),
        ),
        ("CONV_TRANSPOSE_1D", activations(9, 6), [activations(3, 6, 2), activations(4, 2)], 2 * 36 * 4, 4 * (36 + 8)),
        ("SSM_CONV", activations(16, 5), [activations(8, 16), activations(4, 16)], 2 * 4 * 80, 4 * (128 + 64)),
        (
            *("SSM_SCAN", activations(32 * 2 + 4 * 32)),
            [
                *(activations(4, 8, 4, 3), activations(8, 4, 2), activations(4, 2), activations(1, 4)),
                *(activations(4, 1, 2), activations(4, 1, 2), tensor("i32", 1)),
            ],
            (1 + 5 * 4) * 64 + (4 + 2) * 8,
            4 * (128 + 64 + 8 + 4 + 8 + 8 + 1),
        ),
        (
            *("SSM_SCAN", activations(32 * 2 + 4 * 32)),
            [
                *(activations(4, 1, 32, 1), activations(1, 32, 2), activations(32, 2), activations(4, 32)),
                *(activations(4, 1, 2), activations(4, 1, 2), tensor("i32", 1)),
            ],
            (1 + 7 * 4) * 64 + 4 * 64,
            4 * (128 + 64 + 64 + 128 + 8 + 8 + 1),
        ),
        (
            "RWKV_WKV6",
            _RECURRENT,
            [*[_HEADS] * 3, activations(8, 4), _HEADS, _STATES],
            7 * 8 * 64,
            4 * (4 * 64 + 32 + 256),
        ),
        ("RWKV_WKV7", _RECURRENT, [*[_HEADS] * 6, _STATES], 9 * 8 * 64, 4 * (6 * 64 + 256)),
        ("GATED_LINEAR_ATTN", _RECURRENT, [*[_HEADS] * 4, _STATES], (5 * 8 + 1) * 64, 4 * (4 * 64 + 256)),
        (
            *("GATED_DELTA_NET", _RECURRENT),
            [*[_HEADS] * 3, activations(1, 4, 2), activations(1, 4, 2), activations(8, 8, 4)],
            *((7 * 8 + 3) * 64 + 8, 4 * (3 * 64 + 8 + 8 + 256)),
        ),
        (
            *("LIGHTNING_INDEXER", activations(6, 2)),
            [_HEADS, tensor("f16", 8, 1, 6), activations(4, 2), tensor("f16", 6, 2)],
            *((4 * (2 * 8 + 3) + 1) * 12, 256 + 96 + 32 + 24),
        ),
        ("DSV4_HC_PRE", activations(8, 2), [_HEADS, activations(4, 2)], 2 * 64, 256 + 32),
        ("DSV4_HC_PRE", activations(8, 2), [_HEADS, _HEADS], 6 * 64 + 16, 512),
        (
            *("DSV4_HC_POST", _HEADS, [activations(8, 2), _HEADS, activations(4, 2), activations(4, 4, 2)]),
            *(9 * 64, 64 + 256 + 32 + 128),
        ),
        ("DSV4_HC_POST", _HEADS, [activations(8, 2), _HEADS, activations(4, 2)], 2 * 64, 64 + 256 + 32),
        ("DSV4_HC_COMB", activations(4, 4, 2), [activations(24, 2), activations(3), activations(24)], 86 * 32, 300),
    ],
)
def test_rarer_operators_by_hand(
    op: str, output: TensorShape, sources: list[TensorShape], flops: int, read_bytes: int
) -> None:
    """The arithmetic of the definition for each element, state and token; all is read once, shapes not at all."""
    cost = cost_of(op, output, sources)
    assert (cost.flops, cost.read_bytes, cost.written_bytes) == (flops, read_bytes, output.n_bytes)


def test_sinks_are_read_as_parameters() -> None:
    """A number for each head is the last source of attention, or of softmax, with a mask or without."""
    query, key, sinks = tensor("f32", 64, 5, 9), tensor("f16", 64, 256, 3), tensor("f32", 9)
    mask = tensor("f16", 256, 5)
    for masks in ((mask,), ()):
        cost = cost_of("FLASH_ATTN_EXT", tensor("f32", 64, 9, 5), [query, key, key, *masks, sinks], is_weight=True)
        assert cost.parameter_bytes == 36
        scores = tensor("f32", 256, 5, 9)
        assert cost_of("SOFT_MAX", scores, [scores, *masks, sinks], is_weight=True).parameter_bytes == 36


@pytest.mark.parametrize(("weight_sources", "parameter_bytes"), [((1, 2), 12 + 96), ((2,), 96), ((), 0)])
def test_any_source_may_be_a_parameter(weight_sources: tuple[int, ...], parameter_bytes: int) -> None:
    """Where it is known which sources are parameters, each is marked, and what is read of them counts."""
    sources = [activations(24, 2), activations(3), activations(24)]
    cost = cost_of("DSV4_HC_COMB", activations(4, 4, 2), sources, weight_sources=weight_sources)
    assert cost.parameter_bytes == parameter_bytes


@given(st.integers(1, 256), st.data())
def test_a_batch_reads_more_experts_the_larger_it_is(n_experts: int, data: st.DataObject) -> None:
    """One token reads those that it is routed to, more tokens no fewer, never more than there are or were chosen."""
    n_used = data.draw(st.integers(1, n_experts))
    counts = [experts_read(n_experts, n_used, n_tokens) for n_tokens in range(20)]
    assert counts[:2] == [0, n_used]
    assert counts == sorted(counts)
    assert all(count <= min(n_experts, n_tokens * n_used) for n_tokens, count in enumerate(counts))
    assert experts_read(n_experts, n_used, 10**5) == n_experts


def test_experts_that_are_read_by_hand() -> None:
    """Of 60 experts, 4 a token, 15 tokens are expected to read 39; who chooses more than there are reads all."""
    assert experts_read(60, 4, 15) == round(60 * (1 - (14 / 15) ** 15)) == 39
    assert [experts_read(16, 30, n_tokens) for n_tokens in (1, 2, 3)] == [16, 16, 16]


def test_the_cache_is_told_from_other_tensors() -> None:
    """Bytes of sources that are the cache are KV bytes, and so is what is stored into it; other rows are not."""
    keys, query, scores = tensor("f16", 64, 256, 2), tensor("f32", 64, 1, 2), tensor("f32", 256, 1, 2)
    assert cost_of("MUL_MAT", scores, [keys, query]).kv_bytes == 0
    assert cost_of("MUL_MAT", scores, [keys, query], kv_sources=(0,)).kv_read_bytes == keys.n_bytes
    store = [tensor("f32", 64, 2), tensor("i64", 2), tensor("q8_0", 64, 256)]
    cost = cost_of("SET_ROWS", store[2], store, kv_sources=(2,))
    assert (cost.kv_read_bytes, cost.kv_written_bytes) == (0, 2 * 68)
    assert cost_of("SET_ROWS", store[2], store).kv_bytes == 0
    row = tensor("f32", 64)
    assert cost_of("CPY", row, [row, row], kv_sources=(1,)) == OpCost(
        read_bytes=256, written_bytes=256, kv_written_bytes=256
    )


def test_fusing_saves_the_tensor_between() -> None:
    """A norm fused with its weight keeps the FLOPs of both and moves one tensor less twice."""
    x, weight = tensor("f32", 64, 4), tensor("f32", 64)
    apart = cost_of("RMS_NORM", x, [x]) + cost_of("MUL", x, [x, weight])
    fused = cost_of("RMS_NORM+MUL", x, [x, weight])
    assert fused.flops == apart.flops
    assert fused.moved_bytes == apart.moved_bytes - 2 * x.n_bytes
