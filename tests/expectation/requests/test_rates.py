"""What a device gives a forecast."""

from __future__ import annotations

import math
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.requests.rates import rates_of


def test_data_sheets_units_are_decimal() -> None:
    """50 TOPS are 50e12 operations a second, 256 GB/s are 256e9 bytes a second, 5 microseconds are 5e-6 s."""
    rates = rates_of(tops=50, bandwidth_gb_per_s=256, dispatch_us=5)
    assert (rates.peak_flops_per_s, rates.bandwidth_bytes_per_s) == (50e12, 256e9)
    assert rates.dispatch_s == pytest.approx(5e-6)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("tops", 0.0, r"--tops=0: expected TOPS above 0"),
        ("tops", math.inf, r"--tops=inf: expected TOPS above 0"),
        ("tops", math.nan, r"--tops=nan: expected TOPS above 0"),
        ("bandwidth_gb_per_s", -1.0, r"--bandwidth=-1: expected GB/s above 0"),
        ("compute_efficiency", 0.0, r"--compute-efficiency=0: expected a share above 0 and up to 1"),
        ("compute_efficiency", 1.5, r"--compute-efficiency=1\.5: expected a share above 0 and up to 1"),
        ("memory_efficiency", -0.5, r"--memory-efficiency=-0\.5: expected a share above 0 and up to 1"),
        ("memory_efficiency", math.nan, r"--memory-efficiency=nan: expected a share above 0 and up to 1"),
        ("dispatch_us", -3.0, r"--dispatch-us=-3: expected microseconds, 0 or more"),
        ("power_w", 0.0, r"--power-w=0: expected watts above 0"),
    ],
)
def test_what_no_device_gives_is_refused(field: str, value: float, told: str) -> None:
    """The message names the option, the value and what is accepted."""
    figures: dict[str, Any] = {"tops": 1.0, "bandwidth_gb_per_s": 1.0, field: value}
    with pytest.raises(PerfsuiteError, match=rf"^{told}$"):
        rates_of(**figures)
