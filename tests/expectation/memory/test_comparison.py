"""Measured beside predicted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.memory.comparison import STORED_SAMPLES, MemoryGap, MemoryRecord
from perfsuite.expectation.memory.need import MemoryNeed
from perfsuite.records.memory_timeline import MemoryPhase, MemorySample, MemoryTimeline


def sample(at_ns: int, anonymous: int, file: int) -> MemorySample:
    """A sample at a moment."""
    return MemorySample(at_ns=at_ns, anonymous_bytes=anonymous, file_bytes=file, shared_bytes=0)


RECORD = MemoryRecord(
    weights="tiny-q8_0",
    scenario="siso",
    need=MemoryNeed(
        weights_file_bytes=100,
        weights_mapped_bytes=100,
        weights_repacked_bytes=0,
        kv_bytes=30,
        compute_bytes=500,
        compute_touched_bytes=20,
        output_bytes=5,
        work_bytes=5,
    ),
    timeline=MemoryTimeline(
        samples=(sample(0, 5, 5), sample(15, 10, 110), sample(30, 75, 115)),
        peak_rss_bytes=200,
        base=sample(9, 10, 10),
        phases=(MemoryPhase(name="load", start_ns=10, end_ns=20, peak_bytes=120),),
    ),
    vram_bytes=None,
    vram_missing="the run puts no layer on a GPU",
)


def test_the_peak_is_held_against_base_and_need() -> None:
    """200 measured, 20 before the model was opened, 160 predicted: 20 are unexplained, a tenth."""
    assert RECORD.peak == MemoryGap(measured_bytes=200, predicted_bytes=180)
    assert RECORD.peak.unexplained_bytes == 20
    assert RECORD.peak.unexplained_ratio == 0.1


def test_anonymous_and_mapped_memory_are_held_apart() -> None:
    """Each has its own base and its own part of the prediction."""
    assert RECORD.anonymous == MemoryGap(measured_bytes=75, predicted_bytes=10 + 60)
    assert RECORD.file == MemoryGap(measured_bytes=115, predicted_bytes=10 + 100)


def test_less_than_predicted_is_below_zero() -> None:
    """The sign tells which was more; a share of nothing is not known."""
    assert MemoryGap(measured_bytes=50, predicted_bytes=60).unexplained_ratio == -0.2
    assert MemoryGap(measured_bytes=0, predicted_bytes=60).unexplained_ratio is None


def test_a_record_is_read_back() -> None:
    """What was written is what is read."""
    assert MemoryRecord.from_plain(RECORD.to_plain()) == RECORD


def test_a_stored_record_is_thinned() -> None:
    """A long run keeps no more samples than a short one."""
    samples = tuple(sample(at, at, 0) for at in range(5000))
    long = replace(RECORD, timeline=replace(RECORD.timeline, samples=samples))
    stored = MemoryRecord.from_plain(long.to_plain())
    assert len(stored.timeline.samples) <= STORED_SAMPLES
    assert stored.timeline.largest == long.timeline.largest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": 3}, "weights is 3, expected text"),
        ({"vram_bytes": "much"}, "vram_bytes is 'much'"),
        ({"need": {}}, "need: weights_file_bytes is missing"),
        ({"need": {**RECORD.to_plain()["need"], "kv_bytes": -1}}, "need.kv_bytes is -1"),
        ({"need": {**RECORD.to_plain()["need"], "kv_bytes": True}}, "need.kv_bytes is True"),
        ({"need": []}, "need is a list, expected an object"),
        ({"timeline": {}}, "memory timeline"),
        ({"more": 1}, "field 'more' is unknown"),
    ],
)
def test_what_is_no_record_is_refused(change: dict[str, Any], message: str) -> None:
    """The message names the field."""
    with pytest.raises(MeasurementError, match=message):
        MemoryRecord.from_plain({**RECORD.to_plain(), **change})
