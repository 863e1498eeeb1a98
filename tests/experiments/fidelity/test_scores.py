"""Accuracy and scaled error of a latency against its ground truth."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.fidelity.scores import accuracy_percent, scaled_error_us_per_ms

LATENCIES_NS = st.integers(min_value=1, max_value=10**12)


def test_a_printed_row_is_met() -> None:
    """The first prefill kernel of lm-Meter's table, of 82.1329 ms, has 98.85 % and 11.481 µs/ms."""
    assert accuracy_percent(81_189_900, 82_132_900) == pytest.approx(98.85, abs=0.005)
    assert scaled_error_us_per_ms(81_189_900, 82_132_900) == pytest.approx(11.481, abs=0.0005)


def test_the_ground_truth_is_what_an_error_is_relative_to() -> None:
    """150 against 100 is half of the ground truth away; 100 against 150 is a third."""
    assert accuracy_percent(150, 100) == pytest.approx(50.0)
    assert accuracy_percent(100, 150) == pytest.approx(100 * 2 / 3)


def test_an_exact_latency_is_without_error() -> None:
    """A latency that is its ground truth has 100 % and 0 µs/ms."""
    assert (accuracy_percent(7, 7), scaled_error_us_per_ms(7, 7)) == (100.0, 0.0)


def test_an_accuracy_can_be_negative() -> None:
    """Three times the ground truth is -100 %: nothing is cut off."""
    assert accuracy_percent(300, 100) == pytest.approx(-100.0)


@given(measured_ns=LATENCIES_NS, ground_truth_ns=LATENCIES_NS)
def test_both_scores_tell_the_same(measured_ns: int, ground_truth_ns: int) -> None:
    """Accuracy is 100 less a tenth of the scaled error, whatever the latencies."""
    expected = 100.0 - scaled_error_us_per_ms(measured_ns, ground_truth_ns) / 10.0
    assert accuracy_percent(measured_ns, ground_truth_ns) == pytest.approx(expected, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("ground_truth_ns", [0, -1, math.nan, math.inf])
def test_a_ground_truth_above_0_is_needed(ground_truth_ns: float) -> None:
    """A ground truth that is nothing, or no number, is refused by its name."""
    with pytest.raises(PerfsuiteError, match="ground_truth_ns is"):
        accuracy_percent(1, ground_truth_ns)


@pytest.mark.parametrize("measured_ns", [-1, math.nan, math.inf])
def test_a_negative_latency_is_refused(measured_ns: float) -> None:
    """A latency below 0, or that is no number, is refused by its name."""
    with pytest.raises(PerfsuiteError, match="measured_ns is"):
        scaled_error_us_per_ms(measured_ns, 1)
