"""Shapes for tests of what judges them, and ceilings of a device."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from perfsuite.expectation.shapes.floor import padded_shape
from perfsuite.records.ceilings import Bandwidth, Ceilings
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import TILES, ShapeCase, Subject, Tiling


def tiled(shape_id: str, *, tile: int = 64, vector: int = 8) -> ShapeCase:
    tiling = Tiling(tile=tile, vector=vector)
    return ShapeCase(subject=Subject.TILED, shape=OperationShape.from_id(shape_id), tiling=tiling)


def ggml(shape_id: str, subject: Subject = Subject.GGML_CPU) -> ShapeCase:
    return ShapeCase(subject=subject, shape=OperationShape.from_id(shape_id))


def drawn_cases(count: int, *, seed: int = 0) -> list[ShapeCase]:
    """Draw distinct GEMMs of which none is its own padded shape."""
    draw = random.Random(seed)
    found: dict[str, ShapeCase] = {}
    while len(found) < count:
        sizes = {name: draw.randint(1, 300) for name in ("m", "n", "k")}
        shape = OperationShape.of_sizes(Operation.GEMM, "f32", sizes)
        case = ShapeCase(subject=Subject.TILED, shape=shape, tiling=Tiling(tile=draw.choice(TILES), vector=8))
        if padded_shape(case) != shape:
            found[case.case_id] = case
    return list(found.values())


def ceilings(
    flops_per_s: float, *, levels: Sequence[tuple[int, float]] = ((1 << 16, 1e12),), **rates: float
) -> Ceilings:
    """Return ceilings by the bandwidth of each working set and the rate of F32, which is also that of integers."""
    bandwidths = tuple(
        Bandwidth(working_set_bytes=size, read_bytes_per_s=rate, copy_bytes_per_s=rate, triad_bytes_per_s=rate)
        for size, rate in levels
    )
    usual: dict[str, Any] = {"int8_flops_per_s": flops_per_s, "f16_flops_per_s": None, **rates}
    return Ceilings(n_threads=2, bandwidths=bandwidths, fp32_flops_per_s=flops_per_s, dispatch_ns=1000, **usual)
