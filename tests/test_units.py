"""Scaling to what people read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.units import (
    common_time_unit,
    format_bytes,
    format_bytes_per_s,
    format_change,
    format_count,
    format_flops_per_s,
    format_limit,
    format_ns,
    format_ratio,
    format_signed_ns,
    format_tokens_per_s,
    to_change_percent,
    to_giga_per_s,
    to_mebibytes,
    to_percent,
    to_time_unit,
)

_UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (None, "-"),
        (0, "0.00 ns"),
        (7, "7.00 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (5_498_765, "5.50 ms"),
        (123_456_789, "123 ms"),
        (61_000_000_000, "61.0 s"),
        (4_000_000_000_000, "4000 s"),
        (-1500, "-1.50 µs"),
        (0.25, "0.25 ns"),
    ],
)
def test_times_have_three_digits(time_ns: float | None, text: str) -> None:
    """Nanoseconds are reported in the largest unit that leaves a whole one, with three digits."""
    assert format_ns(time_ns) == text


@pytest.mark.parametrize(
    ("time_ns", "text"), [(999.6, "1.00 µs"), (999_999, "1.00 ms"), (9_999, "10.0 µs"), (99_990_000, "100 ms")]
)
def test_rounding_up_does_not_add_a_digit(time_ns: float, text: str) -> None:
    assert format_ns(time_ns) == text


@given(st.integers(1, 10**12))
def test_a_time_can_be_read_back(time_ns: int) -> None:
    """What is reported is within half a percent of what is meant."""
    number, unit = format_ns(time_ns).split()
    assert float(number) * _UNITS[unit] == pytest.approx(time_ns, rel=0.0051)


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(None, "-"), (0, "0.00 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (143 * 2**20, "143 MiB"), (2**31, "2.00 GiB")],
)
def test_bytes_are_binary(n_bytes: float | None, text: str) -> None:
    assert format_bytes(n_bytes) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "-"), (1.0, "+0.0 %"), (1.1, "+10.0 %"), (0.5, "-50.0 %"), (3.0, "+200.0 %"), (0.9999, "+0.0 %")],
)
def test_a_ratio_is_told_as_a_signed_change(ratio: float | None, text: str) -> None:
    """New over old is reported as what was added or taken away."""
    assert format_change(ratio) == text


@given(st.floats(0.0, 100.0))
def test_every_change_has_a_sign(ratio: float) -> None:
    """A change is never told without its direction, and no change is none of less."""
    assert re.fullmatch(r"[+-]\d+\.\d %", format_change(ratio))
    assert format_change(ratio) != "-0.0 %"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (None, "-"),
        (0.9, "-10.0 %"),
        (1.99, "+99.0 %"),
        (1.999, "× 2"),
        (20.0, "× 20"),
        (20.59, "× 20.6"),
        (1830, "× 1830"),
    ],
)
def test_a_large_change_is_told_as_a_factor(ratio: float | None, text: str) -> None:
    """A change is a percentage up to twice the time, then a factor of no more digits than it needs."""
    assert format_ratio(ratio) == text


@pytest.mark.parametrize(
    ("time_ns", "text"), [(None, "-"), (310_000, "+310 µs"), (-1_500_000, "-1.50 ms"), (0, "+0.00 ns")]
)
def test_a_difference_of_times_has_its_sign(time_ns: int | None, text: str) -> None:
    """What was lost has a plus, what was won a minus."""
    assert format_signed_ns(time_ns) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 sessions"), (1, "1 session"), (2, "2 sessions")])
def test_a_count_has_its_noun(count: int, text: str) -> None:
    assert format_count(count, "session") == text


@pytest.mark.parametrize(
    ("per_s", "flops", "in_bytes"),
    [
        (2.114e12, "2.11 TFLOP/s", "2.11 TB/s"),
        (999.9e9, "1.00 TFLOP/s", "1.00 TB/s"),
        (10.04e9, "10.0 GFLOP/s", "10.0 GB/s"),
        (5e6, "5.00 MFLOP/s", "5.00 MB/s"),
        (5e3, "0.01 MFLOP/s", "0.01 MB/s"),
    ],
)
def test_rates_are_told_in_decimal_units(per_s: float, flops: str, in_bytes: str) -> None:
    """With three digits in the largest unit that leaves a whole one."""
    assert (format_flops_per_s(per_s), format_bytes_per_s(per_s)) == (flops, in_bytes)


def test_axes_have_rates_in_decimal_and_bytes_in_binary_units() -> None:
    """1 GFLOP/s is 10^9 FLOP/s, and 1 MiB is 2^20 bytes."""
    assert (to_giga_per_s(2.5e9), to_mebibytes(3 << 19)) == (2.5, 1.5)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        *((0.02, "2 %"), (0.07, "7 %"), (0.2384, "24 %"), (0.24, "24 %"), (0.0211, "2.2 %"), (0.002, "0.2 %")),
        *((0.0999, "10 %"), (4.0, "400 %"), (4.01, "410 %"), (0.0, "0 %"), (1e-12, "0 %")),
    ],
)
def test_a_limit_is_never_understated(ratio: float, text: str) -> None:
    """What bounds something has two digits, rounded up, and no more than it is where it has no more."""
    assert format_limit(ratio) == text


@pytest.mark.parametrize(
    ("times_ns", "unit"),
    [((), "ns"), ((999.0,), "ns"), ((1_000.0, 3.0), "µs"), ((5.0, 2.5e6), "ms"), ((-3e9,), "s")],
)
def test_an_axis_has_the_unit_of_its_largest_time(times_ns: tuple[float, ...], unit: str) -> None:
    assert common_time_unit(times_ns) == unit


def test_axes_have_times_in_their_unit_and_ratios_in_per_cent() -> None:
    """2.5 ms is 2 500 000 ns; a ratio of 1.2 is a change of 20 %, and a share of 0.2 is 20 %."""
    assert (to_time_unit(2_500_000, "ms"), to_time_unit(7, "ns")) == (2.5, 7.0)
    assert (round(to_change_percent(1.2), 6), to_percent(0.2)) == (20.0, 20.0)


@pytest.mark.parametrize(
    ("rate", "text"), [(None, "-"), (0.51234, "0.51"), (9.996, "10.0"), (28.74, "28.7"), (1520.4, "1520")]
)
def test_a_speed_has_three_digits_and_whole_tokens(rate: float | None, text: str) -> None:
    """A speed is a plain number without an exponent; one that is not known is a dash."""
    assert format_tokens_per_s(rate) == text
