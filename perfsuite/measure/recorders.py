"""The recorders: a row for each, from which the driver, the commands and the traces take what they need to know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """One recorder."""

    name: str
    #: Of the driver's own: its number in ``enum ps_recorder_kind``; None where it records from outside the driver.
    native: int | None = None
    #: A `TraceRecorder`: who a trace of it says that recorded; None where it makes no trace.
    traced_as: str | None = None
    #: Whether its cost is measured within one process, context by context.
    is_compared: bool = False


RECORDERS = {
    each.name: each
    for each in (
        Recorder(name="none", native=0),
        Recorder(name="callback", native=1, traced_as="callback", is_compared=True),
        Recorder(name="preload", native=2, traced_as="preload", is_compared=True),
        Recorder(name="cb_eval", native=3, is_compared=True),
        Recorder(name="groups", native=4),
        Recorder(name="experts", native=5, traced_as="callback"),
        Recorder(name="splits", native=6),
        Recorder(name="ebpf", traced_as="ebpf"),
        Recorder(name="opencl", traced_as="opencl"),
    )
}
