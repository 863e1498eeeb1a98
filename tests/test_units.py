"""Scaling to what people read."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.units import (
    format_bytes,
    format_bytes_per_s,
    format_change,
    format_flops_per_s,
    format_limit,
    format_ns,
    format_ratio,
    format_signed_ns,
    format_tokens_per_s,
)

_UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        *((format_ns, None, "-"), (format_ns, 0, "0.00 ns"), (format_ns, 999, "999 ns"), (format_ns, 999.6, "1.00 µs")),
        *((format_ns, 5_498_765, "5.50 ms"), (format_ns, 4 * 10**12, "4000 s"), (format_ns, -1500, "-1.50 µs")),
        *((format_signed_ns, None, "-"), (format_signed_ns, 310_000, "+310 µs"), (format_signed_ns, -1500, "-1.50 µs")),
        *((format_bytes, 1023, "1023 B"), (format_bytes, 1024, "1.00 KiB"), (format_bytes, 2**31, "2.00 GiB")),
        *((format_change, None, "-"), (format_change, 1.0, "+0.0 %"), (format_change, 0.5, "-50.0 %")),
        *((format_change, 3.0, "+200.0 %"), (format_change, 0.9999, "+0.0 %")),
        *((format_ratio, 0.9, "-10.0 %"), (format_ratio, 1.999, "× 2"), (format_ratio, 20.59, "× 20.6")),
        *((format_flops_per_s, 999.9e9, "1.00 TFLOP/s"), (format_bytes_per_s, 5e3, "0.01 MB/s")),
        *((format_tokens_per_s, 9.996, "10.0"), (format_tokens_per_s, 1520.4, "1520")),
    ],
)
def test_figures_have_three_digits_and_a_unit(
    form: Callable[[float | None], str], value: float | None, text: str
) -> None:
    """In the largest unit that leaves a whole one; changes have their sign, large ones are a factor."""
    assert form(value) == text


@given(st.integers(1, 10**12))
def test_a_time_can_be_read_back(time_ns: int) -> None:
    """What is reported is within half a percent of what is meant."""
    number, unit = format_ns(time_ns).split()
    assert float(number) * _UNITS[unit] == pytest.approx(time_ns, rel=0.0051)


@given(st.floats(0.0, 100.0))
def test_every_change_has_a_sign(ratio: float) -> None:
    """A change is never told without its direction, and no change is none of less."""
    assert re.fullmatch(r"[+-]\d+\.\d %", format_change(ratio))
    assert format_change(ratio) != "-0.0 %"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        *((0.02, "2 %"), (0.2384, "24 %"), (0.24, "24 %"), (0.0211, "2.2 %"), (0.002, "0.2 %")),
        *((0.0999, "10 %"), (4.0, "400 %"), (4.01, "410 %"), (0.0, "0 %"), (1e-12, "0 %")),
    ],
)
def test_a_limit_is_never_understated(ratio: float, text: str) -> None:
    """What bounds something has two digits, rounded up, and no more than it is where it has no more."""
    assert format_limit(ratio) == text
