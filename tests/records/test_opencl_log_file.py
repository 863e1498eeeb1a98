"""The log of the OpenCL layer, whole, cut and damaged."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import MeasurementError
from perfsuite.records.opencl_commands import (
    COMMAND_DTYPE,
    ClockPoint,
    ClockSource,
    CommandFlag,
    Commands,
    CommandType,
    OpenClTrace,
)
from perfsuite.records.opencl_log_file import LogContent, RecordKind, read_opencl_log

from ..synthetic_opencl import (
    DEVICE,
    EPOCH_NS,
    command,
    command_records,
    drifting,
    end_record,
    log_bytes,
    log_header,
    queue,
    record,
    steady_commands,
    text_record,
    timer_point,
    trace,
    write_log,
)


def log(*records: bytes) -> LogContent:
    return LogContent(path=Path("x.log"), content=log_header(7) + b"".join(records))


def test_records_lie_where_their_lengths_say() -> None:
    """Longer commands and headers are read by their beginning; what is none is named by its byte."""
    commands = np.concatenate(steady_commands(3, drifting()))
    longer = record(RecordKind.COMMAND, commands[2].tobytes() + bytes(8))
    found = log(command_records(commands[:2]), longer, end_record(3))
    offsets, (last,), _ = found.records()
    assert found.commands(offsets).tobytes() == commands.tobytes()
    assert (last.kind, found.fields(last)[:2]) == (RecordKind.END, (3, 3))
    broken = record(RecordKind.NAME, struct.pack("<II", 2, 2) + b"a\xff")
    found = log(text_record(1, 1, "größe"), broken)
    assert [found.text(each) for each in found.records().others] == [(1, "größe"), (2, "a\ufffd")]
    content = struct.pack("<8sIIqq", b"PSCLLOG1", 32, 7, 0, 99) + end_record(0)
    found = LogContent(path=Path("x.log"), content=content)
    assert (found.header()[0], [each.kind for each in found.records().others]) == (7, [RecordKind.END])
    with pytest.raises(MeasurementError, match=r"x\.log: damaged at byte 72: a record of kind 3 with 12 bytes"):
        log(end_record(0), struct.pack("<II", 3, 12)).records()


#: A record's bytes of a command, its prefix included.
COMMAND_BYTES = 8 + COMMAND_DTYPE.itemsize


def full_trace(n: int = 20) -> OpenClTrace:
    marker = ClockPoint(
        device=1, source=ClockSource.MARKER, device_ns=-5, host_before_ns=EPOCH_NS, host_after_ns=EPOCH_NS + 9
    )
    return trace(
        steady_commands(n, drifting()),
        names=("alpha", "größe", ""),
        queues=(queue(1), queue(2, device=1, is_out_of_order=True)),
        devices=(DEVICE, DEVICE),
        clock_points=(timer_point(EPOCH_NS, drifting()), marker),
        n_lost=3,
        n_unfinished=2,
        replayed=[command(7, EPOCH_NS + i, [1, 2, 3, 4], flags=CommandFlag.REPLAYED) for i in range(3)],
    )


def assert_same(found: OpenClTrace, expected: OpenClTrace) -> None:
    for name in OpenClTrace.__dataclass_fields__:
        one, other = getattr(found, name), getattr(expected, name)
        assert (one.tobytes() == other.tobytes()) if isinstance(one, np.ndarray) else (one == other), name


def prelude(*names: str) -> bytes:
    return b"".join(
        [
            log_header(),
            text_record(2, 1, "p\td\tv"),
            record(3, struct.pack("<IIII", 1, 1, 1, 0)),
            *(text_record(1, number, name) for number, name in enumerate(names or ("alpha",), 1)),
        ]
    )


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Every field comes back, duplicates apart, as the layout of ``ps_cl_command`` packs it."""
    written = full_trace()
    found = read_opencl_log(write_log(tmp_path / "x.log", written))
    assert_same(found, replace(written, ended_ns=2 * EPOCH_NS))
    assert not found.is_complete
    content = struct.pack(
        "<QqqqqqqIIIiHHHH3QQ3II8Q",
        *(0, 101, 102, 103, 104, 105, 106, 1, 1, 4242, -5, 1, 9, 3, 12, 8, 9, 10, 4096, 1, 2, 3, 0),
        *range(70, 78),
    )
    assert len(content) == COMMAND_DTYPE.itemsize
    path = tmp_path / "x.log"
    path.write_bytes(prelude() + record(5, content) + end_record(1))
    (found,) = read_opencl_log(path).commands
    names = ("host_start_ns", "host_end_ns", "queued_ns", "submit_ns", "start_ns", "end_ns", "thread", "status")
    assert [found[name] for name in names] == [101, 102, 103, 104, 105, 106, 4242, -5]
    assert (found["type"], found["flags"]) == (CommandType.KERNEL, CommandFlag.BLOCKING | CommandFlag.WAITS)
    assert (found["work_dim"], found["n_buffers"], found["moved_bytes"]) == (3, 12, 4096)
    assert [found[name].tolist() for name in ("global", "local")] == [[8, 9, 10], [1, 2, 3]]
    assert found["buffer_bytes"].tolist() == list(range(70, 78))


def test_commands_come_in_the_order_of_their_enqueue_calls(tmp_path: Path) -> None:
    """Blocks of threads are put in order; names, readings and unknown kinds may stand between."""
    commands = np.concatenate(steady_commands(50, drifting()))
    path = tmp_path / "x.log"
    path.write_bytes(prelude() + command_records(commands[1::2]) + command_records(commands[::2]) + end_record(50))
    assert read_opencl_log(path).commands["sequence"].tolist() == list(range(50))
    commands = np.concatenate(steady_commands(6, drifting()))
    commands["name"] = [1, 2, 1, 2, 1, 2]
    unknown = record(99, b"something of tomorrow")
    longer = record(5, commands[5].tobytes() + bytes(16))
    parts = [command_records(commands[:2]), unknown, command_records(commands[2:3]), text_record(1, 2, "beta")]
    parts += [command_records(commands[3:5]), longer, end_record(6)]
    path.write_bytes(prelude() + b"".join(parts))
    found = read_opencl_log(path)
    assert (found.commands.tobytes(), found.names) == (commands.tobytes(), ("", "alpha", "beta"))


@given(cut=st.integers(0, 1_000_000))
def test_a_cut_file_gives_what_is_whole(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """Wherever a process was killed, the commands before are read, and nobody knows what was unfinished."""
    whole = log_bytes(full_trace(), is_ended=False)
    first = whole.index(struct.pack("<II", 5, COMMAND_BYTES))
    length = first + cut % (len(whole) - first)
    path = tmp_path_factory.mktemp("cut") / "x.log"
    path.write_bytes(whole[:length])
    found = read_opencl_log(path)
    assert found.commands.size + found.replayed.size == min(23, (length - first) // COMMAND_BYTES)
    assert found.n_unfinished is None
    assert not found.is_complete


def test_what_is_missing_is_counted_or_named(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(prelude() + record(6, struct.pack("<IIQ", 1, 0, 5)) + record(6, struct.pack("<IIQ", 2, 0, 4)))
    assert (read_opencl_log(path).n_lost, read_opencl_log(path).n_unfinished) == (9, None)
    path.write_bytes(prelude() + command_records(np.concatenate(steady_commands(3, drifting()))) + bytes(4096))
    assert read_opencl_log(path).commands.size == 3
    path.write_bytes(log_header(99) + end_record(0))
    found = read_opencl_log(path)
    assert (found.pid, found.commands.size, found.names, found.is_complete) == (99, 0, ("",), True)
    with pytest.raises(MeasurementError, match=r"nowhere\.log: cannot be read"):
        read_opencl_log(tmp_path / "nowhere.log")


def one(**fields: int) -> Commands:
    return command(0, EPOCH_NS, [1, 2, 3, 4], **fields)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (prelude() + text_record(1, 7, "seven"), "the ids of its names are not 1 to 2"),
        (prelude() + record(4, struct.pack("<IIqqq", 1, 3, 0, 0, 0)), "a clock reading of source 3"),
        (prelude() + record(3, struct.pack("<IIII", 2, 1, 4, 0)), "device 4 is used"),
        (prelude() + command_records(one(queue=3)), "a command has queue 3"),
        (prelude() + command_records(one(host_end_ns=EPOCH_NS - 1)), "call of a command ended before it began"),
        (prelude() + command_records(one()) * 2, "command 0 is there more than once"),
        (prelude() + command_records(one()) + end_record(2), "1 commands are there; its end counts 2 recorded"),
        (prelude() + record(7, struct.pack("<QQQQq", 5, 0, 1, 1, 0)), "0 recorded, 1 lost and 1 unfinished of 5"),
    ],
)
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(content)
    with pytest.raises(MeasurementError) as caught:
        read_opencl_log(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
