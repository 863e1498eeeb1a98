"""The record of a sweep over shapes."""

from __future__ import annotations

import pytest

from perfsuite.experiments.shapes.sweep_record import (
    SweepSetting,
    expected_sweep,
)
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject, Tiling
from tests.synthetic_shape_sweep import bmm_setting


def setting(operation: Operation, sizes: tuple[int, ...], swept: str, swept_sizes: range) -> SweepSetting:
    """A sweep of the tiled kernels at tile 64."""
    shape = OperationShape(operation=operation, type="f32", sizes=sizes)
    cases = (
        ShapeCase(subject=Subject.TILED, shape=shape.with_sizes(**{swept: size}), tiling=Tiling(tile=64, vector=8))
        for size in swept_sizes
    )
    return SweepSetting(cases=tuple(cases), swept=swept)


def test_a_point_has_the_share_of_its_padded_size() -> None:
    """65 of 128, at half of the time that 256 takes; over 4096 sizes at tile 64, 0.964 of the padded work is of use."""
    sweep = expected_sweep(bmm_setting(range(1, 4097)))
    assert sweep.expected_mean_efficiency_ratio == pytest.approx(0.964, abs=5e-4)
    point = expected_sweep(bmm_setting(range(65, 257))).points[0]
    assert point.size == 65
    assert point.expected_efficiency_ratio == pytest.approx(65 / 128)
    assert point.expected_time_ratio == pytest.approx(0.5)
    assert (point.time_ns, point.efficiency_ratio, point.error_norm, point.missing) == (None, None, None, None)


def test_the_setting_is_told_and_nothing_is_expected_without_a_tile() -> None:
    sweep = expected_sweep(bmm_setting())
    assert (sweep.subject, sweep.operation, sweep.type, sweep.tile, sweep.vector) == ("tiled", "bmm", "f32", 64, 8)
    assert (sweep.sizes, sweep.swept, sweep.step) == ({"b": 32, "m": 1, "k": 128}, "n", 64)
    assert (sweep.device, sweep.n_rounds) == ("", 0)
    sweep = expected_sweep(bmm_setting(tile=None))
    assert (sweep.step, sweep.tile, sweep.vector, sweep.expected_mean_efficiency_ratio) == (None, None, None, None)
    assert {point.expected_efficiency_ratio for point in sweep.points} == {None}


def test_a_dimension_wastes_what_its_own_step_makes_of_it() -> None:
    """One row of a GEMM computes 64 at each n alike; k has steps of 32 whatever the tile, and products have none."""
    sweep = expected_sweep(setting(Operation.GEMM, (1, 1, 128), "n", range(1, 129)))
    assert sweep.points[63].expected_efficiency_ratio == 1.0
    sweep = expected_sweep(setting(Operation.BMM, (32, 1, 100, 1), "k", range(1, 65)))
    assert sweep.step == 32
    assert sweep.points[32].expected_efficiency_ratio == pytest.approx(33 / 64)
    sweep = expected_sweep(setting(Operation.BMM, (1, 1, 100, 32), "b", range(1, 9)))
    assert sweep.step == 1
    assert {point.expected_efficiency_ratio for point in sweep.points} == {1.0}
    assert [point.expected_time_ratio for point in sweep.points] == [size / 8 for size in range(1, 9)]
