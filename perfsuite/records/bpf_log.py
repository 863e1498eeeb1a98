"""The eBPF recorder's log as it lies in memory; ``native/include/perfsuite/bpf_log.h`` says what each kind holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import NOTHING

#: The part that all records have, ``ps_bpf_record``.
RECORD_DTYPE = np.dtype(
    [
        ("kind", "=u2"),
        ("bytes", "=u2"),
        ("tid", "=u4"),
        ("ns", "=i8"),
        ("subject", "=u8"),
        ("value", "=i8"),
        ("cpu", "=u2"),
        ("flags", "=u2"),
        ("reserved", "=u4"),
    ]
)

#: One-dimensional array of `RECORD_DTYPE`.
Records = npt.NDArray[np.void]
#: Positions of records.
Positions = npt.NDArray[np.intp]


class BpfKind(IntEnum):
    """What a record holds, as ``ps_bpf_kind``."""

    TOKEN_BEGIN = 1
    TOKEN_END = 2
    GRAPH_BEGIN = 3
    GRAPH_END = 4
    STRUCTURE = 5
    OPERATOR_BEGIN = 6
    BARRIER = 7
    SWITCH_OUT = 8
    SWITCH_IN = 9
    WOKEN = 10
    EXPERT_IDS = 11
    LEVELS = 12
    LOST = 13
    THREAD_NAME = 14
    PROBE = 15
    END = 16


class BpfFlag(IntFlag):
    """Flags of `OPERATOR_BEGIN` and `BARRIER`."""

    FUSED = 1
    HAS_COUNTERS = 2
    MULTIPLEXED = 4


class LevelsReason(IntEnum):
    """Flags of `LEVELS`: why they were switched."""

    TOLD = 1
    BELOW_FLOOR = 2
    RECOVERED = 3


class EndReason(IntEnum):
    """Value of `END`: why the recorder stopped."""

    TOLD = 1
    WITH_TARGET = 2
    #: It could not write any more.
    OUTPUT = 3


class BufferKind(IntEnum):
    """How events came from the kernel."""

    RING = 0
    PERF = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BpfLog:
    """A log that was read as far as it is whole."""

    path: Path
    pid: int
    #: Everything asked for is attached from here on.
    start_ns: int
    #: Bits of `TraceLevel`, at the start.
    levels: int
    buffer: BufferKind
    #: Size of a raw tensor in `STRUCTURE` records.
    tensor_bytes: int
    n_cpus: int
    counter_names: tuple[str, ...]
    #: `RECORD_DTYPE`, in the order of the file.
    records: Records
    #: Where each record begins in `content`.
    offsets: npt.NDArray[np.int64]
    content: bytes
    #: Where and why the log breaks off before its end; None where it is whole.
    cut: str | None

    def positions(self, *kinds: BpfKind) -> Positions:
        """Return where the records of some kinds are, in the order of the file."""
        return np.flatnonzero(np.isin(self.records["kind"], kinds))

    def tail(self, position: int) -> memoryview:
        """Return what follows the common part of a record."""
        begin = int(self.offsets[position])
        end = begin + int(self.records["bytes"][position])
        return memoryview(self.content)[begin + RECORD_DTYPE.itemsize : end]

    def counters(self, positions: Positions) -> npt.NDArray[np.int64]:
        """Return what records have counted, one row each; NOTHING in rows that have no counters."""
        n_counters = len(self.counter_names)
        rows = np.full((positions.size, n_counters), NOTHING, np.int64)
        has = (self.records["flags"][positions] & BpfFlag.HAS_COUNTERS) != 0
        first = (self.offsets[positions[has]] + RECORD_DTYPE.itemsize) // 8
        words = np.frombuffer(self.content, np.int64, len(self.content) // 8)
        rows[has] = words[first[:, np.newaxis] + np.arange(n_counters)]
        return rows
