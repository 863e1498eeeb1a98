"""What a policy is asked."""

from __future__ import annotations

import pytest

from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.policy_question import question_of, tilings
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from tests.synthetic_shape_policy import CPU, backend_question, policy_table, shape_policy, tiling_question


def test_cases_are_those_of_the_catalogue() -> None:
    question = tiling_question()
    assert question.case(question.choices[0], 21).case_id == "shape/tiled/gemv/n21-k512/f16/tile8-vector4"
    assert backend_question().case(CPU, 21).case_id == "shape/ggml-cpu/gemv/n21-k512/f16"
    case = question.case(question.choices[3], 77)
    assert [choice for choice in question.choices if question.is_of(choice, case)] == [question.choices[3]]


def test_vectors_wider_than_their_tile_are_left_out() -> None:
    assert [str(each) for each in tilings((8, 16), (4, 16))] == ["tile8-vector4", "tile16-vector4", "tile16-vector16"]
    with pytest.raises(ShapeError, match="vectors of 16: all are wider than the tiles"):
        tilings((8,), (16,))
    with pytest.raises(ShapeError, match="expected a tile of 8, 16, 32, 64"):
        tilings((12,), (4,))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": "m"}, "gemv has no dimension 'm'; expected n, k"),
        ({"sizes": ()}, "n: expected one or more sizes"),
        ({"sizes": (8, 1)}, "n: expected one or more sizes, ascending"),
        ({"choices": ()}, "tiling: nothing to choose from"),
        ({"sizes": (0, 1)}, "expected a size of 1 or more"),
    ],
)
def test_what_is_no_grid_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        tiling_question(**changes)


def test_rows_of_blocks_grow_by_blocks() -> None:
    shape = OperationShape.of_sizes(Operation.GEMV, "q8_0", {"n": 8, "k": 64})
    assert tiling_question(shape=shape, dimension="k", sizes=(32, 64)).step == 32
    assert tiling_question(shape=shape, dimension="n", sizes=(3, 4)).step == 1


def test_a_table_asks_what_it_answers() -> None:
    assert question_of(policy_table()).sizes == policy_table().measured_sizes
    assert question_of(policy_table()).fixed == (("k", 512),)
    assert [str(each) for each in question_of(shape_policy().tables[0]).choices] == ["tile64-vector8", "tile8-vector8"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operation": "conv"}, "operation 'conv' is none of gemm, bmm, gemv, attention"),
        ({"fixed": {}}, "gemv: dimensions n; expected n, k"),
        ({"type": "f64"}, "type 'f64' is none of"),
    ],
)
def test_a_table_about_nothing_is_refused(changes: dict[str, object], message: str) -> None:
    """A file by hand may name operations, sizes and types that there are not."""
    with pytest.raises(ShapeError, match=message):
        question_of(policy_table(**changes))
