"""Taking turns, with made-up work on a made-up clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from perfsuite.errors import OpenClError
from perfsuite.expectation.roofline.ceiling import Rate
from perfsuite.measure.opencl_ceiling_rounds import MIN_ROUNDS, REPETITIONS, Way, rates_in_rounds

MS = 1_000_000


class Device:
    """A device whose launches take their passes' time on a clock that only they move."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.launches: list[tuple[str, int]] = []

    def clock_ns(self) -> int:
        return self.now_ns

    def way(self, name: str, pass_ns: float, *, amount: float = 1000.0, seen: float = 1.0) -> Way:
        """Return work that takes so long a pass, of which the device's own clock sees a share."""

        def launch_ns(passes: int) -> int:
            self.launches.append((name, passes))
            self.now_ns += round(pass_ns * passes)
            return round(pass_ns * passes * seen)

        return Way(amount=amount, launch_ns=launch_ns)

    def rates(self, kinds: dict[str, list[Way]], budget_ms: int = 100) -> dict[str, Rate | str]:
        return rates_in_rounds(kinds, budget_ns=budget_ms * MS, clock_ns=self.clock_ns)


def broken(message: str, *, works: int = 0) -> Callable[[int], int]:
    """Return a launch that works a few times, a millisecond each, and then no more."""
    left = [works]

    def launch_ns(passes: int) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OpenClError(message)
        return MS

    return launch_ns


def rate_of(rates: dict[str, Rate | str], kind: str) -> Rate:
    rate = rates[kind]
    assert isinstance(rate, Rate)
    return rate


def test_the_fastest_way_counts() -> None:
    device = Device()
    rate = rate_of(device.rates({"read": [device.way("slow", 4000), device.way("fast", 1000)]}), "read")
    assert rate.best_per_s == pytest.approx(1e9)
    assert rate.median_per_s == pytest.approx(1e9)


def test_every_round_runs_every_kind() -> None:
    """The kinds take turns, each way as often as it is repeated, so that no disturbance hits one alone."""
    device = Device()
    device.rates({"read": [device.way("a", 1000), device.way("b", 1000)], "copy": [device.way("c", 1000)]})
    one_round = ["a"] * REPETITIONS + ["b"] * REPETITIONS + ["c"] * REPETITIONS
    timed = [name for name, _ in device.launches]
    assert timed[-2 * len(one_round) :] == one_round * 2


def test_a_launch_has_passes_enough() -> None:
    device = Device()
    device.rates({"short": [device.way("short", 20)], "long": [device.way("long", 5 * MS)]}, budget_ms=2000)
    passes = dict(device.launches)
    assert MS <= passes["short"] * 20 < 2 * MS
    assert passes["long"] == 1


@pytest.mark.parametrize(("budget_ms", "n_rounds"), [(1, MIN_ROUNDS), (60, MIN_ROUNDS), (1000, 49)])
def test_rounds_fill_the_budget(budget_ms: int, n_rounds: int) -> None:
    device = Device()
    rate = rate_of(device.rates({"read": [device.way("read", 10 * MS)]}, budget_ms), "read")
    assert rate.n_rounds == n_rounds
    assert n_rounds == MIN_ROUNDS or device.now_ns <= budget_ms * MS


def test_the_median_is_over_the_rounds() -> None:
    """The spread comes from the rounds' bests: here one round of five is twice as fast."""
    times_ns = iter([MS] * (1 + 2 * REPETITIONS) + [MS // 2] * REPETITIONS + [MS] * 100)
    rates = rates_in_rounds({"read": [Way(amount=1000.0, launch_ns=lambda passes: next(times_ns))]}, budget_ns=1)
    rate = rate_of(rates, "read")
    assert rate.best_per_s == pytest.approx(2e6)
    assert rate.median_per_s == pytest.approx(1e6)
    assert rate.spread_ratio == pytest.approx(0.5)


def test_what_cannot_be_launched_says_why() -> None:
    device = Device()
    bad = Way(amount=1.0, launch_ns=broken("out of registers"))
    rates = device.rates({"read": [bad, device.way("good", 1000)], "copy": [bad], "triad": []})
    assert rate_of(rates, "read").best_per_s == pytest.approx(1e9)
    assert rates["copy"] == "out of registers"
    assert rates["triad"] == "there is no way to do it"
    assert rates_in_rounds({"read": [bad]}, budget_ns=10**15) == {"read": "out of registers"}


def test_a_way_that_fails_later_keeps_what_it_had() -> None:
    device = Device()
    late = Way(amount=1000.0, launch_ns=broken("lost", works=1 + 2 * REPETITIONS))
    rate = rate_of(device.rates({"read": [late], "copy": [device.way("good", 1000)]}, budget_ms=1), "read")
    assert rate.best_per_s == pytest.approx(1e6)
    assert rate.n_rounds == 2


def test_a_clock_that_stands_still_gives_no_rate() -> None:
    device = Device()
    rates = device.rates({"read": [device.way("unseen", 0.001, seen=0.0)]}, budget_ms=1)
    assert rates == {"read": "the device's clock did not move"}
    assert max(passes for _, passes in device.launches) >= 1 << 30
