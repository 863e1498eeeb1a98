"""Sweeps: what is expected of them, and how they are measured on a simulated device."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from perfsuite.errors import MeasurementError, ShapeError
from perfsuite.experiments.shapes.sweep import SweptCase, measure_sweep
from perfsuite.experiments.shapes.sweep_record import SweepSetting, expected_sweep
from perfsuite.testing.shape_meters import SimulatedMeter, SimulatedMeters
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject, Tiling
from tests.synthetic_shape_sweep import bmm_setting, staircase

CASES = bmm_setting(range(1, 101)).cases


def n_of(case: ShapeCase) -> int:
    return case.shape.of("n")


def measure(meters: SimulatedMeters, *, verifies: bool = True) -> tuple[SweptCase, ...]:
    return measure_sweep(meters.resident(), CASES, n_rounds=3, seed=1, verifies=verifies, told=lambda *_: None)


def test_each_case_has_a_sample_of_each_round() -> None:
    found = measure(SimulatedMeters(time_ns=staircase(64), sigma=0.0))
    assert [each.case for each in found] == list(CASES)
    assert [each.samples_ns for each in found] == [[128_000] * 3] * 64 + [[256_000] * 3] * 36
    assert all(each.deviation is not None and each.deviation.is_correct and each.missing is None for each in found)


class NotingMeter(SimulatedMeter):
    """Notes the sizes of each call, in the order in which they were asked for."""

    def __init__(self) -> None:
        super().__init__(SimulatedMeters(sigma=0.0))
        self.sizes: list[int] = []

    def round(self, cases: Sequence[ShapeCase], *, order_seed: int, n_launches: int | None = None) -> tuple[int, ...]:
        self.sizes += map(n_of, cases)
        return super().round(cases, order_seed=order_seed)


def test_each_round_has_an_order_of_its_own() -> None:
    meters = [NotingMeter() for _ in range(3)]
    for meter, seed in zip(meters, (1, 1, 2), strict=True):
        measure_sweep(meter, CASES, n_rounds=3, seed=seed, verifies=False, told=lambda *_: None)
    first, second, third = (meters[0].sizes[start : start + 100] for start in (0, 100, 200))
    assert sorted(first) == sorted(second) == sorted(third) == list(range(1, 101))
    assert len({tuple(each) for each in (first, second, third)}) == 3
    assert meters[0].sizes == meters[1].sizes != meters[2].sizes


def test_a_case_that_always_crashes_is_left_out() -> None:
    """It is found when it is verified, or as its call is halved until it is alone; the others have their samples."""
    meters = SimulatedMeters(crashes=lambda case: n_of(case) == 33)
    found = measure(meters)
    assert [n_of(each.case) for each in found if each.missing] == [33]
    assert "n33" in (found[32].missing or "")
    assert [len(each.samples_ns) for each in found] == [3] * 32 + [0] + [3] * 67
    meters = SimulatedMeters(crashes=lambda case: n_of(case) in (5, 71))
    found = measure(meters, verifies=False)
    assert [n_of(each.case) for each in found if each.missing] == [5, 71]
    assert {len(each.samples_ns) for each in found if not each.missing} == {3}


def test_a_crash_that_does_not_come_again_costs_no_size() -> None:
    crashes = iter([True])
    meters = SimulatedMeters(crashes=lambda case: next(crashes, False))
    found = measure(meters, verifies=False)
    assert {(each.missing, len(each.samples_ns)) for each in found} == {(None, 3)}
    with pytest.raises(MeasurementError, match=r"crashes in one sweep, the last: .*SIGSEGV"):
        measure(SimulatedMeters(crashes=lambda case: True))


def test_what_cannot_be_computed_is_left_out_with_its_reason() -> None:
    meters = SimulatedMeters(problem=lambda case: "too wide" if n_of(case) > 90 else None)
    found = measure(meters)
    assert [each.missing for each in found] == [None] * 90 + ["too wide"] * 10
    with pytest.raises(ShapeError, match=r"n1-k128.*: too wide"):
        measure(SimulatedMeters(problem=lambda case: "too wide"))


def setting(operation: Operation, sizes: tuple[int, ...], swept: str, swept_sizes: range) -> SweepSetting:
    """A sweep of the tiled kernels at tile 64."""
    shape = OperationShape(operation=operation, type="f32", sizes=sizes)
    cases = (
        ShapeCase(subject=Subject.TILED, shape=shape.with_sizes(**{swept: size}), tiling=Tiling(tile=64, vector=8))
        for size in swept_sizes
    )
    return SweepSetting(cases=tuple(cases), swept=swept)


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
