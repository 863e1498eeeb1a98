"""The verdict on the growth of attention."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from perfsuite.experiments.tracing.growth import judge_growth, measured_growth
from perfsuite.records.outcome import Finding, Outcome


def judged(law: Callable[[int], float], expected_ns: float | None = 100.0, n: int = 200) -> Finding:
    """Judge a law of time over positions with 1 % of noise; three times the expected slope passes."""
    chance = random.Random(2)
    positions = list(range(100, 100 + n))
    times = [round(law(each) * (1.0 + chance.gauss(0.0, 0.01))) for each in positions]
    return judge_growth(positions, times, expected_ns, 3.0)


@pytest.mark.parametrize(
    ("law", "n", "outcome", "told"),
    [
        (lambda n: 5_000 + 150 * n, 200, Outcome.PASS, "expected 100 ns and 300 ns at most"),
        (lambda n: 5_000 + 400 * n, 200, Outcome.SLOW, "expected 100 ns and 300 ns at most"),
        (lambda n: 500_000 + 300 * n, 200, Outcome.INCONCLUSIVE, "300 ns at most"),
        (lambda n: 0.4 * n * n, 800, Outcome.SLOW, "off the line"),
        (lambda n: 100 * n * (2 if n > 260 else 1), 200, Outcome.SLOW, "off the line"),
        (lambda n: 50_000.0, 200, Outcome.PASS, "a position"),
    ],
    ids=["as it should", "too much", "bounds around the limit", "a bend", "a jump", "level"],
)
def test_growth_is_judged_by_its_slope_and_its_line(
    law: Callable[[int], float], n: int, outcome: Outcome, told: str
) -> None:
    """A position may cost three times what is expected, and all of them must lie on a line."""
    finding = judged(law, n=n)
    assert finding.outcome is outcome
    assert told in finding.reason


def test_without_a_forecast_growth_is_told_and_not_judged() -> None:
    assert judged(lambda n: 150.0 * n, None).outcome is Outcome.INCONCLUSIVE
    times = [100 * each + 100 for each in range(40)]
    assert judge_growth(range(40), times, 100.0, None).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("positions", "times", "outcome"),
    [
        ([], [], Outcome.INVALID),
        ([1, 2, 3], [0, 0, 0], Outcome.INVALID),
        ([1, 2, 3], [5, 6, 7], Outcome.INCONCLUSIVE),
        ([256] * 40, [5] * 40, Outcome.INCONCLUSIVE),
    ],
)
def test_too_little_makes_no_line(positions: list[int], times: list[int], outcome: Outcome) -> None:
    """Without attention, with few steps, or at one length there is no slope."""
    assert judge_growth(positions, times, 100.0, 3.0).outcome is outcome


def test_steps_of_one_length_count_by_their_median() -> None:
    positions = [each for each in range(20) for _ in range(3)]
    times = [time for each in range(20) for time in (1_000 + 50 * each, 1_000 + 50 * each, 90_000)]
    found = measured_growth(positions, times)
    assert found is not None
    assert (found.slope_ns, found.intercept_ns) == (pytest.approx(50.0), pytest.approx(1_000.0))
