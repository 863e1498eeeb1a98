"""Timelines of memory, without any process."""

from __future__ import annotations

import pytest

from perfsuite.records.memory_timeline import MemoryPhase, MemorySample, MemoryTimeline


def sample(at_ns: int, anonymous: int = 0, file: int = 0, shared: int = 0) -> MemorySample:
    return MemorySample(at_ns=at_ns, anonymous_bytes=anonymous, file_bytes=file, shared_bytes=shared)


def timeline(*samples: MemorySample) -> MemoryTimeline:
    """A timeline whose model was loaded between 10 and 20 ns."""
    return MemoryTimeline(
        samples=samples,
        peak_rss_bytes=1000,
        base=sample(9, 1, 2, 3),
        phases=(MemoryPhase(name="load", start_ns=10, end_ns=20, peak_bytes=None),),
    )


def test_the_steady_sample_comes_after_loading() -> None:
    """The peak is over all three kinds of memory; without a later sample the largest is steady."""
    assert sample(0, 1, 20, 300).rss_bytes == 321
    seen = timeline(sample(5, 1), sample(15, 900), sample(25, 500), sample(30, 400))
    assert (seen.largest.at_ns, seen.steady.at_ns, timeline(sample(5, 1), sample(15, 900)).steady.at_ns) == (15, 25, 15)


@pytest.mark.parametrize("n_samples", [3, 50, 200])
def test_thinning_keeps_both_ends_and_the_largest(n_samples: int) -> None:
    seen = timeline(*(sample(at, 7777 if at == 613 else at) for at in range(1000)))
    thinned = seen.thinned(n_samples)
    times = [each.at_ns for each in thinned.samples]
    assert len(times) <= n_samples
    assert times == sorted(set(times))
    assert {0, 613, 999} <= set(times)
