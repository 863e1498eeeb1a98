"""The record of an independent rate."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import Resource
from perfsuite.expectation.roofline.independent_rate import IndependentRate

RATE = IndependentRate(
    program="numpy", resource=Resource.COMPUTE, kind="fp32", processor="cpu", n_threads=2, best_per_s=5e11
)


def test_a_rate_comes_back_as_it_was() -> None:
    """A rate equals itself after its way through plain values."""
    assert IndependentRate.from_plain(RATE.to_plain()) == RATE


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"resource": "patience"}, "resource is 'patience'"),
        ({"best_per_s": 0.0}, "best_per_s is 0.0, expected a finite number above 0"),
        ({"best_per_s": float("inf")}, "best_per_s is inf"),
        ({"surplus": 1}, "field 'surplus' is unknown"),
    ],
)
def test_what_is_no_rate_is_refused(changed: dict[str, Any], message: str) -> None:
    """An unknown resource or field, or a rate that cannot be, is a MeasurementError."""
    with pytest.raises(MeasurementError, match=message):
        IndependentRate.from_plain({**RATE.to_plain(), **changed})
