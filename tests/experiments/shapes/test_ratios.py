"""What a process measured, and which of its ratios are confirmed."""

from __future__ import annotations

import pytest

from perfsuite.experiments.shapes.ratios import Answer, Measurements, RatioBounds, confirmed_answer
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shapes import tiled

LIMIT = 1.25


def bounds(ratio: float, width: float = 0.1) -> RatioBounds:
    return RatioBounds(ratio=ratio, lower_ratio=ratio - width, upper_ratio=ratio + width)


def answered(*ratios: RatioBounds, n_confirmations: int = 2) -> tuple[Answer, SimulatedMeters]:
    """Return the answer to a script, and the meters that it used."""
    meters = SimulatedMeters()
    screen, script = Measurements(meters.resident()), iter(ratios)
    answer = confirmed_answer(
        lambda _: next(script), screen, meters, limit_ratio=LIMIT, n_confirmations=n_confirmations
    )
    return answer, meters


def test_only_what_every_process_flags_is_confirmed() -> None:
    """The ratio is that of the fresh processes, between the widest of their bounds: the screen selected the shape."""
    answer, meters = answered(bounds(3.0), bounds(1.6), bounds(2.0, width=0.5))
    assert answer.is_confirmed
    assert answer.bounds == RatioBounds(ratio=1.8, lower_ratio=1.5, upper_ratio=2.5)
    assert answer.history == "; in 2 fresh processes"
    assert (meters.n_fresh, meters.n_open) == (2, 0)
    answer, meters = answered(bounds(2.0), bounds(1.0), n_confirmations=3)
    assert not answer.is_confirmed
    assert answer.bounds == bounds(1.0)
    assert answer.history == "; the screen saw +100.0 % (+90.0 % to +110.0 %), which fresh process 1 did not confirm"
    assert (meters.n_fresh, meters.n_open) == (1, 0)
    answer, _ = answered(bounds(2.0), bounds(2.0), bounds(1.3))
    assert not answer.is_confirmed
    with pytest.raises(StopIteration):
        answered(bounds(2.0))


NARROW, WIDE = tiled("gemm/m1-n33-k32/f32"), tiled("gemm/m1-n64-k32/f32")


def test_the_same_is_measured_once() -> None:
    """Problems, deviations, samples and pairs by case; of eight samples after five, three; pairs have an order."""
    meters = SimulatedMeters()
    bench = Measurements(meters.resident())
    seen = [
        (bench.problem(NARROW), bench.deviation(NARROW), bench.samples_ns(NARROW, 5), bench.pairs(WIDE, NARROW, 5))
        for _ in range(3)
    ]
    assert seen[0] == seen[1] == seen[2]
    assert meters.n_calls == {"problem": 1, "verify": 1, "samples": 1, "pairs": 1}
    meters = SimulatedMeters()
    bench = Measurements(meters.resident())
    first = bench.samples_ns(NARROW, 5)
    assert bench.samples_ns(NARROW, 8)[:5] == first
    assert meters.n_samples[NARROW.case_id] == 8
    meters = SimulatedMeters()
    bench = Measurements(meters.resident())
    assert bench.pairs(WIDE, NARROW, 5) != bench.pairs(NARROW, WIDE, 5)


def test_the_fastest_sample_is_that_of_all_measurements() -> None:
    """Samples of pairs count, on either side, and none is taken where there are some."""
    meters = SimulatedMeters(sigma=0.3)
    bench = Measurements(meters.resident())
    pairs = bench.pairs(WIDE, NARROW, 20)
    assert (bench.fastest_ns(NARROW, 5), bench.fastest_ns(WIDE, 5)) == (min(pairs.new_ns), min(pairs.old_ns))
    assert meters.n_calls["samples"] == 0
    samples_ns = bench.samples_ns(NARROW, 50)
    assert bench.fastest_ns(NARROW, 5) == min(*samples_ns, *pairs.new_ns)
    bench = Measurements(SimulatedMeters().resident())
    assert bench.fastest_ns(NARROW, 5) == min(bench.samples_ns(NARROW, 5))
