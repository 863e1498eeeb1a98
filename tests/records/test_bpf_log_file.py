"""Reading the eBPF recorder's log."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.bpf_log_file import (
    HEADER_BYTES,
    PROBE_TAIL,
    BpfKind,
    BufferKind,
    EndReason,
    read_bpf_log,
    terminated,
)
from perfsuite.testing.bpf_logs import MAIN_TID, WORKER_TID, BpfLogBuilder, RawTensor, small_log
from perfsuite.testing.engine_traces import EPOCH_NS


def ended(n_tokens: int = 2, *, counter_names: tuple[str, ...] = ()) -> BpfLogBuilder:
    log = small_log(n_tokens, counter_names=counter_names)
    log.experts(180_000, RawTensor(address=0x77, name="ids", ne=(2, 1, 1, 1)), [[3, 5]])
    log.probe("operator_begin", 12, 3456)
    log.end(200_000)
    return log


def test_records_carry_their_thread_and_counters(tmp_path: Path) -> None:
    """The header names the counters; each record has its thread, and a row only where it counted."""
    log = read_bpf_log(ended(counter_names=("cycles", "page-faults")).write(tmp_path / "log"))
    assert (log.pid, log.start_ns, log.levels, log.buffer) == (MAIN_TID, EPOCH_NS, 0xFF, BufferKind.RING)
    assert (log.n_cpus, log.tensor_bytes, log.counter_names) == (2, 336, ("cycles", "page-faults"))
    log = read_bpf_log(ended().write(tmp_path / "log"))
    assert set(log.records["tid"][log.positions(BpfKind.BARRIER)].tolist()) == {MAIN_TID, WORKER_TID}
    made = small_log(1, counter_names=("a", "b"))
    made.operator(90_000, None, RawTensor(address=1, name="late"))
    log = read_bpf_log(made.write(tmp_path / "log"))
    begins = log.positions(BpfKind.OPERATOR_BEGIN)
    assert log.counters(begins).tolist() == [[at, at] for at in (0, 0, 101, 101, 202, 202)] + [[-1, -1]]


def test_records_of_all_lengths_are_read(tmp_path: Path) -> None:
    """Short records, structures, ids, names and probes are in the order of the file, and each has its own tail."""
    log = read_bpf_log(ended().write(tmp_path / "log"))
    assert log.cut is None
    assert (log.records["kind"][-1], log.positions(BpfKind.OPERATOR_BEGIN).size) == (BpfKind.END, 2 * 2 * 3)
    (probe,) = log.positions(BpfKind.PROBE)
    n_runs, name = PROBE_TAIL.unpack_from(log.tail(probe))
    assert (n_runs, terminated(name), log.records["subject"][probe]) == (12, "operator_begin", 3456)
    names = [terminated(log.tail(position)) for position in log.positions(BpfKind.THREAD_NAME)]
    assert names == ["llama-cli", "worker"]


def test_what_breaks_a_log_off_is_reported(tmp_path: Path) -> None:
    """A killed recorder, a full disk, garbage, and a record too short for its kind; the rest is kept."""
    log = read_bpf_log(small_log().write(tmp_path / "log"))
    assert log.cut is not None
    assert log.cut.startswith("no end record after byte")
    made = small_log()
    made.end(200_000, reason=EndReason.OUTPUT)
    cut = read_bpf_log(made.write(tmp_path / "log")).cut
    assert cut is not None
    assert cut.startswith("the recorder could not write beyond byte")
    whole = small_log().content()
    path = tmp_path / "log"
    path.write_bytes(whole + b"\xff" * 100)
    log = read_bpf_log(path)
    assert log.cut == f"damaged at byte {len(whole)}: a record of kind 65535 with 65535 bytes; 100 bytes are left over"
    assert log.positions(BpfKind.TOKEN_END).size == 2
    made = small_log(1)
    n_good = len(made.content())
    made.add(BpfKind.GRAPH_BEGIN, 90_000)
    made.end(100_000)
    log = read_bpf_log(made.write(tmp_path / "log"))
    assert log.cut is not None
    assert log.cut.startswith(f"damaged at byte {n_good}: a record of kind 3 with 40 bytes")


def test_a_log_is_read_up_to_any_cut(tmp_path: Path) -> None:
    path, whole = tmp_path / "log", ended().content()
    path.write_bytes(whole)
    offsets, n_records = read_bpf_log(path).offsets, read_bpf_log(path).records.size
    for n_bytes in sorted({*offsets.tolist(), *range(HEADER_BYTES, len(whole), 7)}):
        path.write_bytes(whole[:n_bytes])
        log = read_bpf_log(path)
        n_whole = int(np.searchsorted(np.append(offsets[1:], len(whole)), n_bytes, side="right"))
        assert log.records.size == n_whole < n_records
        assert log.cut is not None
        if n_bytes not in offsets:
            left = n_bytes - int(offsets[n_whole])
            assert log.cut == f"cut at byte {offsets[n_whole]}, in the middle of a record; {left} bytes are left over"


@pytest.mark.parametrize(
    ("at", "raw", "message"),
    [
        (0, b"NOTALOG!", "begins with b'NOTALOG!'"),
        (8, struct.pack("=I", 7), "version of the eBPF recorder's log is 7; expected 1"),
        (12, struct.pack("=I", 1 << 30), "header_bytes of the eBPF recorder's log is 1073741824"),
        (44, struct.pack("=I", 9), "n_counters of the eBPF recorder's log is 9; expected 8 at most"),
    ],
)
def test_another_header_is_refused(tmp_path: Path, at: int, raw: bytes, message: str) -> None:
    content = bytearray(ended().content())
    content[at : at + len(raw)] = raw
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(MeasurementError, match=re.escape(message)):
        read_bpf_log(path)
