"""What makes a ratio beyond its limit a fact."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perfsuite.experiments.shapes.confirmation import Answer, Measure, RatioBounds, confirmed_answer
from perfsuite.experiments.shapes.measurements import Measurements
from perfsuite.experiments.shapes.shape_design import ShapeDesign
from perfsuite.testing.shape_meters import SimulatedMeters

LIMIT = 1.25


def bounds(ratio: float, width: float = 0.1) -> RatioBounds:
    """Return a ratio with bounds so far beside it."""
    return RatioBounds(ratio=ratio, lower_ratio=ratio - width, upper_ratio=ratio + width)


def scripted(*ratios: RatioBounds) -> Measure:
    """Measure what the script says, process by process."""
    script: Iterator[RatioBounds] = iter(ratios)
    return lambda _: next(script)


def answered(*ratios: RatioBounds, n_confirmations: int = 2) -> tuple[Answer, SimulatedMeters]:
    """Return the answer to a script, and the meters that it used."""
    meters = SimulatedMeters()
    design = ShapeDesign(n_pairs=10, alpha=0.05, n_confirmations=n_confirmations)
    screen = Measurements(meters.resident())
    return confirmed_answer(scripted(*ratios), screen, meters, limit_ratio=LIMIT, design=design), meters


@pytest.mark.parametrize("ratio", [1.0, 1.2, 1.3, 1.35])
def test_what_the_screen_does_not_flag_needs_no_other_process(ratio: float) -> None:
    """It is the lower bound that flags, not the estimate."""
    answer, meters = answered(bounds(ratio))
    assert not answer.is_confirmed
    assert answer.bounds == bounds(ratio)
    assert answer.history == ""
    assert meters.n_fresh == 0


def test_what_every_process_flags_is_confirmed() -> None:
    """The ratio is that of the fresh processes, between the widest of their bounds: the screen selected the shape."""
    answer, meters = answered(bounds(3.0), bounds(1.6), bounds(2.0, width=0.5))
    assert answer.is_confirmed
    assert answer.bounds == RatioBounds(ratio=1.8, lower_ratio=1.5, upper_ratio=2.5)
    assert answer.history == "; in 2 fresh processes"
    assert (meters.n_fresh, meters.n_open) == (2, 0)


def test_the_first_process_that_does_not_flag_ends_it() -> None:
    """A third is not started, and what the second saw is told; two that flag do not make up for one that does not."""
    answer, meters = answered(bounds(2.0), bounds(1.0), n_confirmations=3)
    assert not answer.is_confirmed
    assert answer.bounds == bounds(1.0)
    assert answer.history == "; the screen saw +100.0 % (+90.0 % to +110.0 %), which fresh process 1 did not confirm"
    assert (meters.n_fresh, meters.n_open) == (1, 0)
    answer, _ = answered(bounds(2.0), bounds(2.0), bounds(1.3))
    assert not answer.is_confirmed


def test_fresh_processes_are_ended_where_measuring_fails() -> None:
    """An error within a fresh process leaves none behind."""
    with pytest.raises(StopIteration):
        answered(bounds(2.0))


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (bounds(1.5), "+50.0 % (+40.0 % to +60.0 %)"),
        (RatioBounds(ratio=1.5, lower_ratio=0.0, upper_ratio=float("inf")), "+50.0 %"),
    ],
)
def test_bounds_that_are_none_are_not_told(ratio: RatioBounds, told: str) -> None:
    """Too few pairs have no bounds."""
    assert ratio.told == told
