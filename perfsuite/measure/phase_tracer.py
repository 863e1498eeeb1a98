"""The interposed tracer of phases: how a worker is started with it, and what it leaves.

The library wraps llama.cpp's functions and the driver's own two (``native/src/tracer/phase_tracer.c``); it is brought
in by the loader of the worker, never into this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.call_trace import CallTrace, TracedCall, TracedFunction

#: The header and the calls of the file are as native/include/perfsuite/call_trace.h has them.
_TIMES = ("first_raw_ns", "first_monotonic_ns", "last_raw_ns", "last_monotonic_ns")
HEADER_DTYPE = np.dtype([("magic", "S8"), ("n_calls", "<u8"), ("n_lost", "<u8"), *((name, "<i8") for name in _TIMES)])
_PLACES = ("function", "count", "thread", "reserved")
CALL_DTYPE = np.dtype([("entry_ns", "<i8"), ("exit_ns", "<i8"), *((name, "<i4") for name in _PLACES)])
MAGIC = b"pscalls"

_FUNCTIONS = tuple(TracedFunction)


def tracer_environment(library: Path, path: Path) -> Mapping[str, str]:
    """Return the variables with which a worker is traced by the tracer of its engine; its calls go to `path`.

    Raises `MeasurementError` where the loader cannot bring the library in. *Source*: ld.so(8), ``LD_PRELOAD``: spaces
    and colons part the libraries of the list, and nothing escapes them.
    """
    if any(each.isspace() or each == ":" for each in str(library)):
        raise MeasurementError(
            f"{library}: cannot be preloaded, LD_PRELOAD takes no path with a space or a colon; "
            "set XDG_CACHE_HOME there to a folder without either"
        )
    return {"LD_PRELOAD": str(library), "PERFSUITE_PHASE_TRACE": str(path)}


def read_trace(path: Path) -> CallTrace:
    """Read what the tracer wrote, in the order of entry; `MeasurementError` where there is no whole trace."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MeasurementError(f"{path}: the phase tracer left no trace ({error.strerror})") from None
    if len(content) < HEADER_DTYPE.itemsize:
        raise MeasurementError(f"{path}: {len(content)} bytes are no phase trace; expected {HEADER_DTYPE.itemsize}")
    header = np.frombuffer(content, HEADER_DTYPE, count=1)[0]
    body = content[HEADER_DTYPE.itemsize :]
    expected_bytes = int(header["n_calls"]) * CALL_DTYPE.itemsize
    if header["magic"] != MAGIC or len(body) != expected_bytes:
        raise MeasurementError(
            f"{path}: no whole phase trace: begins {bytes(header['magic'])!r}, "
            f"holds {len(body)} bytes of {expected_bytes}"
        )
    rows = np.sort(np.frombuffer(body, CALL_DTYPE), order=("entry_ns", "exit_ns"))
    if unknown := set(rows["function"].tolist()) - set(range(len(_FUNCTIONS))):
        raise MeasurementError(f"{path}: no phase trace: function {min(unknown)}, expected 0 to {len(_FUNCTIONS) - 1}")
    return CallTrace(
        tracer="interposed",
        calls=tuple(_call(row) for row in rows),
        n_lost=int(header["n_lost"]),
        monotonic_offset_ns=int(header["first_monotonic_ns"] - header["first_raw_ns"]),
    )


def _call(row: np.void) -> TracedCall:
    function = _FUNCTIONS[int(row["function"])]
    return TracedCall(
        function=function,
        entry_ns=int(row["entry_ns"]),
        exit_ns=int(row["exit_ns"]),
        n_tokens=int(row["count"]) if function is TracedFunction.DECODE else None,
    )
