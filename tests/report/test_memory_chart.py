"""The picture of memory over time, as series."""

from __future__ import annotations

from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.memory.need import MemoryNeed
from perfsuite.records.chart import LineRole
from perfsuite.records.memory_timeline import MemoryPhase, MemorySample, MemoryTimeline
from perfsuite.report.memory_chart import PREDICTED_LABEL, memory_chart

MIB = 2**20
SECOND = 10**9


def sample(at_s: float, mib: int) -> MemorySample:
    """A sample, an hour after the clock's zero."""
    return MemorySample(at_ns=int((3600 + at_s) * SECOND), anonymous_bytes=mib * MIB, file_bytes=0, shared_bytes=0)


def phase(name: str, start_s: float, end_s: float) -> MemoryPhase:
    """A phase, an hour after the clock's zero."""
    return MemoryPhase(
        name=name, start_ns=int((3600 + start_s) * SECOND), end_ns=int((3600 + end_s) * SECOND), peak_bytes=None
    )


RECORD = MemoryRecord(
    weights="tiny-q8_0",
    scenario="siso",
    need=MemoryNeed(
        weights_file_bytes=50 * MIB,
        weights_mapped_bytes=50 * MIB,
        weights_repacked_bytes=0,
        kv_bytes=20 * MIB,
        compute_bytes=90 * MIB,
        compute_touched_bytes=10 * MIB,
        output_bytes=0,
        work_bytes=0,
    ),
    timeline=MemoryTimeline(
        samples=(sample(0, 5), sample(1, 10), sample(2, 60), sample(3, 80), sample(4, 100)),
        peak_rss_bytes=100 * MIB,
        base=sample(1, 10),
        phases=(phase("load", 1.5, 2.5), phase("prefill", 2.8, 3.5), phase("decode", 3.5, 4)),
    ),
    vram_bytes=None,
)


def test_each_phase_is_a_line_that_begins_where_the_last_ended_and_the_prediction_goes_across() -> None:
    """Time starts at the first sample, memory is in MiB; base and prediction are one line."""
    *lines, reference = memory_chart([RECORD]).panels[0].lines
    assert [(line.label, line.x, line.y) for line in lines] == [
        ("before the model is opened", (0.0, 1.0), (5.0, 10.0)),
        ("load", (1.0, 2.0), (10.0, 60.0)),
        ("prefill", (2.0, 3.0), (60.0, 80.0)),
        ("decode", (3.0, 4.0), (80.0, 100.0)),
    ]
    assert reference.role is LineRole.REFERENCE
    assert (reference.label, reference.x, reference.y) == (PREDICTED_LABEL, (0.0, 4.0), (90.0, 90.0))
