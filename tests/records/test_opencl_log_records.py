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
    assert found.commands(first).tobytes() == commands.tobytes()
    assert found.fields(last)[:2] == (n, n)


def test_commands_of_another_length_are_another_run() -> None:
    """A longer command, of a later layer, is read by its beginning."""
    commands = np.concatenate(steady_commands(3, drifting()))
    found = log(command_records(commands[:2]), record(RecordKind.COMMAND, commands[2].tobytes() + bytes(8)))
    runs = list(found.runs())
    assert [each.n_records for each in runs] == [2, 1]
    assert found.commands(runs[1]).tobytes() == commands[2:].tobytes()


def test_texts_end_where_they_say() -> None:
    """The zeros up to the end of a record are no part of its text, and broken UTF-8 is shown as such."""
    broken = record(RecordKind.NAME, struct.pack("<II", 2, 2) + b"a\xff")
    found = log(text_record(1, 1, "größe"), broken)
    assert [found.text(run) for run in found.runs()] == [(1, "größe"), (2, "a\ufffd")]


def test_the_header_may_be_longer() -> None:
    """Records begin where the header says."""
    content = struct.pack("<8sIIqq", b"PSCLLOG1", 32, 7, 0, 99) + end_record(0)
    found = LogContent(path=Path("x.log"), content=content)
    assert found.pid() == 7
    assert [run.kind for run in found.runs()] == [RecordKind.END]


def test_what_is_no_record_is_told_with_its_place() -> None:
    """The byte at which the damage begins is in the message."""
    with pytest.raises(MeasurementError, match=r"x\.log: damaged at byte 72: a record of kind 3 with 12 bytes"):
        list(log(end_record(0), struct.pack("<II", 3, 12)).runs())
