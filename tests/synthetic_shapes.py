"""Shapes for tests of what judges them, and a judge over a simulated device."""

from __future__ import annotations

import random
from typing import Any

from perfsuite.expectation.shapes.floor import padded_shape
from perfsuite.experiments.shapes.basis import Basis, Measurements
from perfsuite.experiments.shapes.judge import MARGIN_RATIO
from perfsuite.experiments.shapes.shape_property import DEFAULT
from perfsuite.testing.shape_meters import SimulatedMeters
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


def basis(meters: SimulatedMeters, **changes: Any) -> Basis:
    usual: dict[str, Any] = {
        "screen": Measurements(meters.resident()),
        "meters": meters,
        "design": DEFAULT,
        "margin_ratio": MARGIN_RATIO,
        "ceilings": None,
        "forecasts": None,
    }
    return Basis(**{**usual, **changes})
