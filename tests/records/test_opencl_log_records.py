"""Finding the records of a log."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.opencl_log_records import LogContent, RecordKind

from ..synthetic_opencl import command_records, drifting, end_record, log_header, record, steady_commands, text_record


def log(*records: bytes) -> LogContent:
    """Return a log that holds these records."""
    return LogContent(path=Path("x.log"), content=log_header(7) + b"".join(records))


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 1000, 5000])
def test_commands_that_follow_each_other_are_one_run(n: int) -> None:
    """However many there are, they are found at once, up to the next record of another kind."""
    commands = np.concatenate(steady_commands(n, drifting()))
    found = log(command_records(commands), end_record(n))
    first, last = found.runs()
    assert (first.kind, first.n_records, last.kind) == (RecordKind.COMMAND, n, RecordKind.END)
    assert (found.commands(first).tobytes(), found.fields(last)[:2]) == (commands.tobytes(), (n, n))


def test_records_lie_where_their_lengths_say() -> None:
    """Longer commands and headers are read by their beginning; what is none is named by its byte."""
    commands = np.concatenate(steady_commands(3, drifting()))
    found = log(command_records(commands[:2]), record(RecordKind.COMMAND, commands[2].tobytes() + bytes(8)))
    runs = list(found.runs())
    assert ([each.n_records for each in runs], found.commands(runs[1]).tobytes()) == ([2, 1], commands[2:].tobytes())
    broken = record(RecordKind.NAME, struct.pack("<II", 2, 2) + b"a\xff")
    found = log(text_record(1, 1, "größe"), broken)
    assert [found.text(run) for run in found.runs()] == [(1, "größe"), (2, "a\ufffd")]
    content = struct.pack("<8sIIqq", b"PSCLLOG1", 32, 7, 0, 99) + end_record(0)
    found = LogContent(path=Path("x.log"), content=content)
    assert (found.pid(), [run.kind for run in found.runs()]) == (7, [RecordKind.END])
    with pytest.raises(MeasurementError, match=r"x\.log: damaged at byte 72: a record of kind 3 with 12 bytes"):
        list(log(end_record(0), struct.pack("<II", 3, 12)).runs())
