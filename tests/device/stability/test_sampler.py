"""Watching a device while something runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.device.stability.sampler import MOST_GAP_NS, Sample, Sampling, energy_joules, joules_per_token, sampled
from tests.sys_trees import plant, put

S = 1_000_000_000


def sample(at_ns: int, *, watts: float | None = None, joules: float | None = None) -> Sample:
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
    """Also between samples; P = t from 1.25 s to 3.75 s is 6.25 J, exactly."""
    assert energy_joules(powers(lambda _: 5.0), S, 4 * S) == pytest.approx(15)
    assert energy_joules(powers(lambda _: 5.0), S + 123_456_789, 4 * S) == pytest.approx(5 * 2.876543211)
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
    """Nobody knows the power of a time in which the sensor said nothing; three periods are taken as linear."""
    short = powers(lambda at_s: None if 3 < at_s < 4.5 else 5.0)
    assert energy_joules(short, S, 8 * S) == pytest.approx(35)
    long = powers(lambda at_s: None if 3 < at_s < 5 else 5.0)
    assert energy_joules(long, S, 8 * S) is None
    assert energy_joules(long, 5 * S, 8 * S) == pytest.approx(15)
    assert MOST_GAP_NS == 3 * S // 2
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
    assert joules_per_token(powers(lambda _: 5.0), spans, n_tokens) is None


@given(st.lists(st.floats(0.1, 100), min_size=21, max_size=21), st.integers(1, 9 * S))
def test_parts_add_up(watts: list[float], cut_ns: int) -> None:
    samples = powers(lambda at_s: watts[int(at_s * 2)])
    whole = energy_joules(samples, 0, 10 * S)
    first, second = energy_joules(samples, 0, cut_ns), energy_joules(samples, cut_ns, 10 * S)
    if first is not None and second is not None:
        assert first + second == pytest.approx(whole)


@given(st.lists(st.floats(0.1, 100), min_size=21, max_size=21))
def test_energy_lies_between_the_least_and_the_most_power(watts: list[float]) -> None:
    energy = energy_joules(powers(lambda at_s: watts[int(at_s * 2)]), S, 9 * S)
    assert energy is not None
    assert 8 * min(watts) * (1 - 1e-9) <= energy <= 8 * max(watts) * (1 + 1e-9)


ZONE = "sys/class/thermal/thermal_zone0/temp"
COOLER = "sys/class/thermal/cooling_device1/cur_state"


@contextmanager
def sampling(root: Path, **counted: Any) -> Iterator[Sampling]:
    """Take a sample of everything before and after."""
    found = sampled(root, **counted)
    found.take_all()
    yield found
    found.take_all()


def test_samples_follow_the_device(tmp_path: Path) -> None:
    root = plant("orangepi5", tmp_path)
    with sampling(root, zones=("soc-thermal",), processors=(6,)) as found:
        put(root, ZONE, "80000")
        put(root, COOLER, "3")
        put(root, "sys/devices/system/cpu/cpufreq/policy6/scaling_cur_freq", "1200000")
    first, last = found.samples
    assert (first.temperature_celsius, first.cpu_mhz, first.is_throttled) == (44.384, 2256.0, False)
    assert (last.temperature_celsius, last.cpu_mhz, last.is_throttled) == (80.0, 1200.0, True)
    assert found.was_throttled is True


def test_a_counter_that_grows_is_throttling(tmp_path: Path) -> None:
    """On x86 only the growth tells; what is not known stays None."""
    count = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    put(tmp_path, count, "7")
    with sampling(tmp_path) as still:
        pass
    with sampling(tmp_path) as grown:
        put(tmp_path, count, "8")
    with sampling(plant("rubikpi", tmp_path / "other")) as cool:
        pass
    with sampling(tmp_path / "nothing") as unknown:
        pass
    assert [each.was_throttled for each in (still, grown, cool, unknown)] == [False, True, False, None]


def test_the_power_of_a_run_is_its_energy(tmp_path: Path) -> None:
    found = sampled(plant("pixel8pro", tmp_path))
    for at_ns in range(0, 5 * S, S // 2):
        found.take_all(at_ns)
    assert energy_joules(found.samples, S, 4 * S) == pytest.approx(0.8125 * 3.998 * 3)


@pytest.mark.parametrize(
    ("board", "n_reads", "n_of_all"),
    [("rubikpi", 9, 26), ("orangepi5", 9, 27), ("raspberrypi5", 5, 6), ("pixel8pro", 13, 32)],
)
def test_what_a_sample_costs_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: str, n_reads: int, n_of_all: int
) -> None:
    """Zones, rates, limits, cooling devices and power: all at both ends, a few in between; no program counts."""
    opened = list[str]()
    read = os.open

    def counted(path: Any, *arguments: Any, **others: Any) -> int:
        opened.append(os.fspath(path))
        return read(path, *arguments, **others)

    def cost(look: Callable[[], None]) -> int:
        opened.clear()
        look()
        return len([path for path in opened if path.startswith(f"{tmp_path}/sys")])

    with sampling(plant(board, tmp_path)) as found:
        monkeypatch.setattr("os.open", counted)
        seen = max(cost(found.take) for _ in range(20)), cost(found.take_all)
        monkeypatch.undo()
    assert seen == (n_reads, n_of_all)


def test_what_is_read_in_turns_is_seen_within_three_seconds(tmp_path: Path) -> None:
    root = plant("orangepi5", tmp_path)
    with sampling(root) as found:
        put(root, ZONE, "97000")
        put(root, COOLER, "3")
        for _ in range(6):
            found.take()
        put(root, ZONE, "44000")
        put(root, COOLER, "0")
    assert max(each.temperature_celsius or 0.0 for each in found.samples) == 97.0
    assert [found.samples[at].is_throttled for at in (0, 6, -1)] == [False, True, False]
    assert found.was_throttled is True
