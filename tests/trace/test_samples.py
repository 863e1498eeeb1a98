"""Samples from a stored record, and from one whose clock is a counter: what each operator did, by every counter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.counted.counting_run import counts_of
from perfsuite.records.counts import METRICS, ROW_DTYPE
from perfsuite.records.engine_columns import RING_DTYPE
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import faster_half_mean, midmean, misaligned_evaluations, replicate_samples, traced_phases


def test_every_phase_has_a_sample(stored_record: EngineRecord) -> None:
    samples = replicate_samples(stored_record)
    others = {Phase.DRAFT_PREFILL, Phase.DRAFT, Phase.EMBED, Phase.ENCODE_IMAGE}
    assert set(samples.phase_ns) == set(Phase) - others
    assert min(samples.phase_ns.values()) > 0
    steps = list(traced_phases(stored_record, Phase.DECODE))
    assert len(steps) == 24
    for step in steps:
        assert step.operators_ns + step.rest_ns == step.span.duration_ns
        assert 0 <= step.rest_ns < step.span.duration_ns
    (prefill,) = traced_phases(stored_record, Phase.PREFILL)
    samples = replicate_samples(stored_record)
    assert samples.phase_ns[Phase.EMBEDDING] == prefill.role_ns["embd"]
    assert samples.phase_ns[Phase.PREFILL] == prefill.span.duration_ns - prefill.role_ns["embd"]


def test_a_record_without_operators_still_has_phases(stored_record: EngineRecord) -> None:
    samples = replicate_samples(replace(stored_record, graphs=(), events=b""))
    assert samples.operator_ns == {}
    assert samples.phase_ns[Phase.DECODE] > 0
    assert Phase.EMBEDDING not in samples.phase_ns


@pytest.mark.parametrize("n_lost", [1, 5])
def test_an_evaluation_that_lost_events_is_counted(stored_record: EngineRecord, n_lost: int) -> None:
    assert misaligned_evaluations(stored_record) == 0
    events = np.frombuffer(stored_record.events, RING_DTYPE)
    (second,) = np.flatnonzero(events["index"] == 0)[1:2] - 1  # before it comes the entry of its first operator
    cut = np.delete(events, np.s_[second - n_lost : second])
    assert misaligned_evaluations(replace(stored_record, events=cut.tobytes())) == 1


@pytest.mark.parametrize(
    ("values", "mean"), [([5], 5.0), ([9, 5], 5.0), ([100, 5, 7], 6.0), ([1, 2, 3, 10**9, 10**9], 2.0)]
)
def test_the_faster_half_is_averaged(values: list[int], mean: float) -> None:
    """What disturbed fewer than half of the values leaves no trace; the middle one counts as fast."""
    assert faster_half_mean(values) == mean


def test_a_process_is_reduced_as_asked(stored_record: EngineRecord) -> None:
    usual, fast = replicate_samples(stored_record), replicate_samples(stored_record, faster_half_mean)
    assert fast.phase_ns[Phase.DECODE] < usual.phase_ns[Phase.DECODE]
    assert fast.operator_ns[Phase.DECODE]["ffn_up"] < usual.operator_ns[Phase.DECODE]["ffn_up"]
    assert fast.phase_ns[Phase.LOAD] == usual.phase_ns[Phase.LOAD]
    assert (midmean([1, 2, 3, 100]), midmean([7])) == (2.5, 7)
    low, high = [100] * 10, [120] * 10
    assert abs(midmean(low + high) - midmean([*low[1:], *high, 120])) < 3


def rows_of(record: EngineRecord) -> npt.NDArray[Any]:
    """Return rows as the tool would leave them: three reads for an instruction, and no allocation."""
    spans = [time for span in record.spans for time in (span.start_ns, span.end_ns)]
    times = np.unique([*np.frombuffer(record.events, RING_DTYPE)["ns"].tolist(), *spans])
    rows = np.zeros(len(times), ROW_DTYPE)
    rows["instructions"], rows["reads"] = times, 3 * times
    return rows


def test_each_operator_has_what_it_did(stored_record: EngineRecord) -> None:
    expected = replicate_samples(stored_record, sum)
    counts = {(row.phase, row.role): row for row in counts_of(stored_record, rows_of(stored_record))}
    assert {phase.value for phase in expected.phase_ns} == {phase for phase, _ in counts}
    for phase, by_role in expected.operator_ns.items():
        assert counts[phase.value, ""].instructions == expected.phase_ns[phase]
        for role, n_instructions in by_role.items():
            row = counts[phase.value, role]
            assert (row.instructions, row.reads, row.allocations) == (n_instructions, 3 * n_instructions, 0)
    assert len(counts) > len(METRICS)


def test_a_record_of_times_is_refused(stored_record: EngineRecord) -> None:
    """Its times are no readings of the counters."""
    rows = rows_of(stored_record)
    rows["instructions"] += 1
    with pytest.raises(MeasurementError, match="times that no counter gave"):
        counts_of(stored_record, rows)
