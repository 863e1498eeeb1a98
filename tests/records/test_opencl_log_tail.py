"""A log that grows while it is read."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.live import LiveKernel
from perfsuite.records.opencl_commands import COMMAND_DTYPE, CommandFlag, CommandType
from perfsuite.records.opencl_log_tail import OpenClLogTail, TailedRecords

from ..synthetic_opencl import log_header, record, text_record

HEADER = log_header(7)
NAME = text_record(1, 1, "add")
NOTHING = TailedRecords(kernels=(), n_lost=0)


def queue(number: int, device: int) -> bytes:
    return record(3, struct.pack("<IIII", number, 1, device, 0))


def clock(device: int, device_ns: int, before_ns: int, after_ns: int) -> bytes:
    return record(4, struct.pack("<IIqqq", device, 1, device_ns, before_ns, after_ns))


def command(sequence: int, **fields: int) -> bytes:
    """Return a command, a kernel where nothing else is said, that was queued at 100 and ended at 400."""
    row = np.zeros(1, COMMAND_DTYPE)
    usual = {"type": CommandType.KERNEL, "queue": 1, "name": 1, "host_start_ns": 90, "sequence": sequence}
    times = {"queued_ns": 100, "submit_ns": 200, "start_ns": 300, "end_ns": 400}
    for field, value in {**usual, **times, **fields}.items():
        row[field] = value
    return record(5, row.tobytes())


def kernel(sequence: int, *, shift_ns: int | None = 0, name: str = "add") -> LiveKernel:
    queued, submit, start, end = (None if shift_ns is None else time + shift_ns for time in (100, 200, 300, 400))
    return LiveKernel(
        sequence=sequence,
        name=name,
        queue=1,
        enqueue_ns=90,
        queued_ns=queued,
        submit_ns=submit,
        start_ns=start,
        end_ns=end,
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "opencl-7.log"


def append(log: Path, content: bytes) -> None:
    with log.open("ab") as out:
        out.write(content)


def test_a_log_that_is_not_there_yet_has_nothing(log: Path) -> None:
    """It may come later; what is over the limit of a look comes with the next."""
    tail = OpenClLogTail(log)
    assert tail.read() == NOTHING
    append(log, HEADER + NAME + queue(1, 1) + clock(1, 0, 0, 0) + command(0))
    assert (tail.read().kernels, tail.read()) == ((kernel(0),), NOTHING)
    log.unlink()
    append(log, HEADER + NAME + queue(1, 1) + clock(1, 0, 0, 0) + b"".join(map(command, range(20))))
    tail = OpenClLogTail(log)
    looks = [tail.read(limit_bytes=1000).kernels for _ in range(6)]
    assert [each.sequence for look in looks for each in look] == list(range(20))
    assert max(map(len, looks)) <= 6


def test_a_log_may_be_cut_anywhere(log: Path) -> None:
    content = (
        HEADER
        + NAME
        + queue(1, 1)
        + clock(1, 0, 0, 0)
        + command(0)
        + record(6, struct.pack("<IIQ", 1, 0, 2))
        + command(1)
    )
    tail = OpenClLogTail(log)
    seen: list[LiveKernel] = []
    n_lost = 0
    for byte in content:
        append(log, bytes([byte]))
        found = tail.read()
        seen += found.kernels
        n_lost += found.n_lost
    assert (seen, n_lost) == ([kernel(0), kernel(1)], 2)


def test_times_follow_the_latest_clock(log: Path) -> None:
    """Device times move by the latest reading of their own device; copies and duplicates are passed over."""
    append(log, HEADER + NAME + queue(1, 2) + clock(2, 50, 1000, 1100) + command(0))
    tail = OpenClLogTail(log)
    assert tail.read().kernels == (kernel(0, shift_ns=1000),)
    append(log, clock(1, 0, 0, 0) + clock(2, 0, 7000, 7000) + command(1))
    assert tail.read().kernels == (kernel(1, shift_ns=7000),)
    other = command(1, type=CommandType.COPY) + command(2, flags=CommandFlag.REPLAYED) + record(99, b"?")
    log.unlink()
    append(log, HEADER + NAME + queue(1, 1) + clock(1, 0, 0, 0) + other + command(3))
    assert OpenClLogTail(log).read().kernels == (kernel(3),)


def test_without_a_clock_or_a_profile_times_are_unknown(log: Path) -> None:
    """No reading, an unknown queue, no times, or 0: None, and not the clock's zero."""
    append(log, HEADER + command(0))
    tail = OpenClLogTail(log)
    assert tail.read().kernels == (kernel(0, shift_ns=None, name=""),)
    append(log, NAME + queue(1, 1) + clock(1, 0, 0, 0) + command(1, flags=CommandFlag.NO_PROFILE))
    assert tail.read().kernels == (kernel(1, shift_ns=None),)
    log.unlink()
    append(log, HEADER + NAME + queue(1, 1) + clock(1, 0, 7000, 7000))
    append(log, command(0, submit_ns=0) + command(1, queued_ns=0, submit_ns=0, start_ns=0, end_ns=0))
    one, other = OpenClLogTail(log).read().kernels
    assert (one.queued_ns, one.submit_ns, one.start_ns, one.end_ns) == (7100, None, 7300, 7400)
    assert other == kernel(1, shift_ns=None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no log of any kind at all", "begins with b'no log o'"),
        (HEADER + struct.pack("<II", 5, 4), "a record of kind 5 with 4 bytes"),
        (HEADER + record(5, b"short"), "a record of kind 5 with 16 bytes"),
        (HEADER + struct.pack("<II", 9, 1 << 30), "a record of kind 9"),
    ],
)
def test_damage_is_one_line(content: bytes, message: str, log: Path) -> None:
    append(log, content)
    with pytest.raises(MeasurementError, match=message) as caught:
        OpenClLogTail(log).read()
    assert str(log) in str(caught.value)
    with pytest.raises(MeasurementError, match="cannot be read"):
        OpenClLogTail(log.parent).read()
