"""What one process measured is measured once."""

from __future__ import annotations

from perfsuite.experiments.shapes.measurements import Measurements
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shapes import tiled

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
