"""The table of operators against the engine's own list, and its rows against each other."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from perfsuite.expectation.graph import Batch
from perfsuite.expectation.graphs.operator import Operator
from perfsuite.expectation.op_rules import MEASURABLE, OPERATORS, WITHOUT_ROW, OpRule, cost_of, rule_of
from perfsuite.expectation.timing.features import features, lone_operator, shape_cost, shape_of, standing_in
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.expectation.trace_cases import operator_balance
from perfsuite.measure.engine import find_engine
from perfsuite.records.op_cost import NO_COST

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
