"""A shape's case: who computes it, and cut how."""

from __future__ import annotations

import pytest

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
