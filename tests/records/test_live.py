"""Live records as lines."""

from __future__ import annotations

import json

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.live import (
    LiveEnd,
    LiveForecast,
    LiveKernel,
    LiveLoss,
    LivePhase,
    LiveRecord,
    LiveToken,
    from_line,
    to_line,
)

RECORDS = (
    LivePhase(phase="decode", repetition=0, token=64, n_tokens=1, start_ns=10, end_ns=25),
    LiveToken(repetition=0, step=0, token=64, latency_ns=15, end_ns=25, tokens_per_s=1.5),
    LiveKernel(sequence=3, name='k"e', queue=1, enqueue_ns=5, queued_ns=6, submit_ns=None, start_ns=7, end_ns=2**62),
    LiveForecast(repetition=0, step=8, horizon=8, forecast_ns=15, lower_ns=14, upper_ns=16),
    LiveLoss(where="opencl", n_records=None),
    LiveEnd(end_ns=99, is_complete=True, n_phases=1, n_tokens=1, n_kernels=0),
)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
def test_a_record_survives_its_line(record: LiveRecord) -> None:
    """Every kind comes back as it was, from one line without blanks."""
    line = to_line(record)
    assert from_line(line.encode()) == record
    assert "\n" not in line
    assert json.loads(line)["kind"] == record.kind


def test_a_line_is_flat_and_names_its_fields() -> None:
    """The schema of a phase is what the document says; an unknown kind is None, an unknown field ignored."""
    assert to_line(RECORDS[0]) == (
        '{"kind":"phase","phase":"decode","repetition":0,"token":64,"n_tokens":1,"start_ns":10,"end_ns":25}'
    )
    assert from_line('{"kind":"energy","end_ns":1}') is None
    assert from_line('{"kind":"loss","where":"queue","n_records":1,"why":"full"}') == LiveLoss(
        where="queue", n_records=1
    )


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "7", '{"where":"queue"}', '{"kind":"loss"}', b"\xff\xfe", '{"kind":[]}']
)
def test_what_is_no_record_is_one_line(line: str | bytes) -> None:
    """Damage is an error that shows the line."""
    with pytest.raises(MeasurementError, match="not a record of this suite"):
        from_line(line)
