"""Least squares with weights of 0 or more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.timing.least_squares import nonnegative_weights

_WEIGHT = st.floats(0.0, 100.0)


@given(st.lists(_WEIGHT, min_size=3, max_size=3))
def test_a_sum_of_terms_is_found_again(weights: list[float]) -> None:
    """Values that are made of the terms give back the weights, whatever the size of the terms."""
    terms = [(1.0, n * 1e6, n * n * 1e-3) for n in (1.0, 2.0, 3.0, 5.0, 8.0)]
    values = [sum(weight * term for weight, term in zip(weights, row, strict=True)) for row in terms]
    found = nonnegative_weights(terms, values)
    again = [sum(weight * term for weight, term in zip(found, row, strict=True)) for row in terms]
    assert again == pytest.approx(values, rel=1e-6, abs=1e-6)
    assert min(found) >= 0.0


@pytest.mark.parametrize(
    ("values", "least"),
    [((900.0, 300.0), (600.0, 0.0)), ((0.0, 400.0), (0.0, 12.0)), ((0.0, 0.0), (0.0, 0.0))],
)
def test_a_weight_stops_at_nothing(values: tuple[float, float], least: tuple[float, float]) -> None:
    """A line that would fall is flat, and one that would start below nothing starts there."""
    assert nonnegative_weights([(1.0, 10.0), (1.0, 30.0)], values) == pytest.approx(least, abs=1e-6)


def test_a_term_that_is_always_0_weighs_nothing() -> None:
    """A column of zeros divides by no zero."""
    assert nonnegative_weights([(1.0, 0.0), (1.0, 0.0)], (5.0, 5.0)) == pytest.approx((5.0, 0.0))
