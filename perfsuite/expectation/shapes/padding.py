"""Padding as an expectation: the shape that is computed in the place of the one that was asked for.

The suite's kernels compute whole tiles, so a shape costs what its padded shape costs, and the share that is of use is
flops(shape) / flops(padded shape): along one dimension L / (ceil(L / t) t), the sawtooth of LIFE, Fig. 8. ggml names no
tile; its operators are held against the next round shape, which nothing should be slower than.
"""

from __future__ import annotations

from perfsuite.expectation.operators.tiling import padded
from perfsuite.workload.shapes.operation import Operation
from perfsuite.workload.shapes.operation_shape import OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase

#: The suite's kernels step along the inner dimension by so many values.
INNER_STEP = 32

#: What sizes of ggml's operators are rounded up to: the widest block of rows that its kernels handle at once.
ROUND_SIZE = 32

#: Dimensions that the suite's kernels cut into tiles; the others are as they are, each index a work-group of its own.
TILED_DIMENSIONS: dict[Operation, tuple[str, ...]] = {
    Operation.GEMM: ("m", "n"),
    Operation.BMM: ("n",),
    Operation.GEMV: ("n",),
    Operation.ATTENTION: ("context",),
}


def dimension_steps(case: ShapeCase) -> dict[str, int]:
    """Return by how much each dimension that is padded grows at once."""
    tile = ROUND_SIZE if case.tiling is None else case.tiling.tile
    inner = ROUND_SIZE if case.tiling is None else INNER_STEP
    return {**dict.fromkeys(TILED_DIMENSIONS[case.operation], tile), case.operation.inner_dimension: inner}


def padded_shape(case: ShapeCase) -> OperationShape:
    """Return the shape with each padded dimension rounded up to whole steps."""
    steps = dimension_steps(case)
    return case.shape.with_sizes(**{name: padded(case.shape.of(name), step) for name, step in steps.items()})
