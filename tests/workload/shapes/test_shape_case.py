"""A shape's case: who computes it, and cut how."""

from __future__ import annotations

import pytest

from perfsuite.errors import ShapeError
from perfsuite.workload.shapes.shape_case import ShapeCase


@pytest.mark.parametrize(
    "case_id",
    [
        "shape/tiled/bmm/b32-m1-n512-k128/f16/tile64-vector8",
        "shape/tiled/attention/heads32-kvheads8-head64-context3/q8_0/tile8-vector1",
        "shape/ggml-cpu/gemv/n64-k64/q8_0",
        "shape/ggml-opencl/gemm/m2-n64-k256/q4_k",
    ],
)
def test_a_case_comes_back_from_its_id(case_id: str) -> None:
    assert ShapeCase.from_id(case_id).case_id == case_id


@pytest.mark.parametrize(
    ("case_id", "complaint"),
    [
        ("shape/tiled/gemv/n64-k64/f32", "expected a tile and a vector"),
        ("shape/ggml-cpu/gemv/n64-k64/f32/tile64-vector8", "expected no tile"),
        ("shape/tiled/gemv/n64-k64/f32/tile65-vector8", "expected a tile of 8, 16, 32, 64"),
        ("shape/tiled/gemv/n64-k64/f32/tile8-vector16", "no wider than the tile"),
        ("shape/cuda/gemv/n64-k64/f32", "not a shape's case id"),
    ],
)
def test_what_is_no_case_is_refused(case_id: str, complaint: str) -> None:
    with pytest.raises(ShapeError, match=complaint):
        ShapeCase.from_id(case_id)
