"""Measuring a sweep on a simulated device."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from perfsuite.errors import MeasurementError, ShapeError
from perfsuite.experiments.shapes.sweep import MEASURING, VERIFYING, SweptCase, measure_sweep
from perfsuite.testing.shape_meters import SimulatedMeter, SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase
from tests.synthetic_shape_sweep import bmm_setting, staircase

CASES = bmm_setting(range(1, 101)).cases


def n_of(case: ShapeCase) -> int:
    return case.shape.of("n")


def measure(meters: SimulatedMeters, *, verifies: bool = True) -> tuple[SweptCase, ...]:
    return measure_sweep(meters.resident(), CASES, n_rounds=3, seed=1, verifies=verifies, told=nobody)


def nobody(stage: str, n_done: int, n_all: int) -> None:
    """Notes the steps."""


def test_each_case_has_a_sample_of_each_round() -> None:
    found = measure(SimulatedMeters(time_ns=staircase(64), sigma=0.0))
    assert [each.case for each in found] == list(CASES)
    assert {each.samples_ns for each in found[:64]} == {(128_000,) * 3}
    assert {each.samples_ns for each in found[64:]} == {(256_000,) * 3}
    assert all(each.deviation is not None and each.deviation.is_correct for each in found)
    assert all(each.missing is None for each in found)


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
        measure_sweep(meter, CASES, n_rounds=3, seed=seed, verifies=False, told=nobody)
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
    assert found[32].samples_ns == ()
    assert {len(each.samples_ns) for each in found if not each.missing} == {3}
    meters = SimulatedMeters(crashes=lambda case: n_of(case) in (5, 71))
    found = measure(meters, verifies=False)
    assert [n_of(each.case) for each in found if each.missing] == [5, 71]
    assert {len(each.samples_ns) for each in found if not each.missing} == {3}


def test_a_crash_that_does_not_come_again_costs_no_size() -> None:
    crashes = iter([True])
    meters = SimulatedMeters(crashes=lambda case: next(crashes, False))
    found = measure(meters, verifies=False)
    assert not any(each.missing for each in found)
    assert {len(each.samples_ns) for each in found} == {3}
    with pytest.raises(MeasurementError, match=r"crashes in one sweep, the last: .*SIGSEGV"):
        measure(SimulatedMeters(crashes=lambda case: True))


def test_what_cannot_be_computed_is_left_out_with_its_reason() -> None:
    meters = SimulatedMeters(problem=lambda case: "too wide" if n_of(case) > 90 else None)
    found = measure(meters)
    assert [each.missing for each in found] == [None] * 90 + ["too wide"] * 10
    with pytest.raises(ShapeError, match=r"n1-k128.*: too wide"):
        measure(SimulatedMeters(problem=lambda case: "too wide"))


def test_wrong_outputs_are_told() -> None:
    meters = SimulatedMeters(wrong=lambda case: n_of(case) == 7)
    found = measure(meters)
    assert [n_of(each.case) for each in found if each.deviation and not each.deviation.is_correct] == [7]
    assert len(found[6].samples_ns) == 3
    assert all(each.deviation is None for each in measure(SimulatedMeters(), verifies=False))


def test_every_step_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    measure_sweep(
        SimulatedMeters().resident(),
        CASES,
        n_rounds=3,
        seed=1,
        verifies=True,
        told=lambda stage, n_done, n_all: told.append((stage, n_done, n_all)),
    )
    verified, measured = ([each for each in told if each[0] == stage] for stage in (VERIFYING, MEASURING))
    assert [n_done for _, n_done, _ in verified] == list(range(101))
    assert (measured[0], measured[-1]) == ((MEASURING, 0, 300), (MEASURING, 300, 300))
    assert [n_done for _, n_done, _ in measured] == sorted(n_done for _, n_done, _ in measured)
