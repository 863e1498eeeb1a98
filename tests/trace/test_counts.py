"""A record whose clock is a counter says what each operator did, by every counter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.counts import METRICS, ROW_DTYPE
from perfsuite.records.engine_columns import RING_DTYPE
from perfsuite.records.events import EngineRecord
from perfsuite.trace.counts import counts_of
from perfsuite.trace.samples import replicate_samples


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
