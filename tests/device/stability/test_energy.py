"""Energy from samples."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.device.stability.energy import MOST_GAP_NS, energy_joules, joules_per_token
from perfsuite.device.stability.sampler import Sample

S = 1_000_000_000


def sample(at_ns: int, *, watts: float | None = None, joules: float | None = None) -> Sample:
    """A sample that knows nothing but its power or its energy."""
    return Sample(
        at_ns=at_ns,
        temperature_celsius=None,
        cpu_mhz=None,
        is_throttled=None,
        n_throttle_events=None,
        power_watts=watts,
        counted_joules=joules,
    )


def powers(watts: Callable[[float], float | None], last_s: float = 10.0) -> list[Sample]:
    """Two samples a second of a power that is a function of the time."""
    return [sample(S * half // 2, watts=watts(half / 2)) for half in range(int(last_s * 2) + 1)]


def test_a_steady_power_times_the_time() -> None:
    """Also between samples."""
    assert energy_joules(powers(lambda _: 5.0), S, 4 * S) == pytest.approx(15)
    assert energy_joules(powers(lambda _: 5.0), S + 123_456_789, 4 * S) == pytest.approx(5 * 2.876543211)


def test_a_power_that_grows_is_integrated_by_trapezoids() -> None:
    """P = t from 1.25 s to 3.75 s is 6.25 J, exactly."""
    assert energy_joules(powers(lambda at_s: at_s), 5 * S // 4, 15 * S // 4) == pytest.approx(6.25)


def test_a_counter_is_read_off() -> None:
    """The difference of its values, linear between samples, and no matter what the power says."""
    samples = [sample(S * half // 2, joules=half * 2.0, watts=99.0) for half in range(20)]
    assert energy_joules(samples, S, 3 * S) == pytest.approx(8)
    assert energy_joules(samples, S + S // 4, 3 * S) == pytest.approx(7)


@pytest.mark.parametrize(
    ("start_ns", "end_ns"), [(-1, 2 * S), (9 * S, 11 * S), (2 * S, 2 * S), (3 * S, 2 * S), (2 * S + 1, 3 * S - 1)]
)
def test_what_is_not_covered_has_no_energy(start_ns: int, end_ns: int) -> None:
    """Before the first sample, after the last one, without duration, and with fewer than two samples within."""
    assert energy_joules(powers(lambda _: 5.0), start_ns, end_ns) is None


def test_a_gap_is_no_energy() -> None:
    """Nobody knows the power of a time in which the sensor said nothing; up to three periods it is taken as linear."""
    short = powers(lambda at_s: None if 3 < at_s < 4.5 else 5.0)
    assert energy_joules(short, S, 8 * S) == pytest.approx(35)
    long = powers(lambda at_s: None if 3 < at_s < 5 else 5.0)
    assert energy_joules(long, S, 8 * S) is None
    assert energy_joules(long, 5 * S, 8 * S) == pytest.approx(15)
    assert MOST_GAP_NS == 3 * S // 2


def test_no_samples_no_energy() -> None:
    """Neither are samples without a sensor any."""
    assert energy_joules([], 0, S) is None
    assert energy_joules(powers(lambda _: None), S, 3 * S) is None


def test_joules_a_token_are_over_all_spans() -> None:
    """Spans of 1 and 3 s at 5 W make 20 J; of ten tokens each has 2."""
    samples = powers(lambda _: 5.0)
    assert joules_per_token(samples, [(S, 2 * S), (4 * S, 7 * S)], 10) == pytest.approx(2)


@pytest.mark.parametrize(
    ("spans", "n_tokens"), [([(S, 2 * S), (9 * S, 12 * S)], 10), ([], 10), ([(S, 2 * S)], 0), ([(S, S + 1)], 10)]
)
def test_a_part_of_the_spans_is_no_mean(spans: list[tuple[int, int]], n_tokens: int) -> None:
    """Where one span is not covered, or nothing was made, there is no energy a token."""
    assert joules_per_token(powers(lambda _: 5.0), spans, n_tokens) is None


@given(st.lists(st.floats(0.1, 100), min_size=21, max_size=21), st.integers(1, 9 * S))
def test_parts_add_up(watts: list[float], cut_ns: int) -> None:
    """The energy of two neighbouring intervals is that of both together, wherever the cut is."""
    samples = powers(lambda at_s: watts[int(at_s * 2)])
    whole = energy_joules(samples, 0, 10 * S)
    first, second = energy_joules(samples, 0, cut_ns), energy_joules(samples, cut_ns, 10 * S)
    if first is not None and second is not None:
        assert first + second == pytest.approx(whole)


@given(st.lists(st.floats(0.1, 100), min_size=21, max_size=21))
def test_energy_lies_between_the_least_and_the_most_power(watts: list[float]) -> None:
    """Of all samples around the interval."""
    energy = energy_joules(powers(lambda at_s: watts[int(at_s * 2)]), S, 9 * S)
    assert energy is not None
    assert 8 * min(watts) * (1 - 1e-9) <= energy <= 8 * max(watts) * (1 + 1e-9)
