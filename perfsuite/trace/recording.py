"""The folder of a recording: the trace once it is whole, and until then what the eBPF recorder has left.

A recording that was cut short, by a killed process or a full disk, is read from the recorder's own log.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import MeasurementError, masked_command
from perfsuite.records.bpf_log_file import read_bpf_log
from perfsuite.records.codec import plain_json
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.trace_file import read_trace, write_trace
from perfsuite.records.whole_file import write_json
from perfsuite.trace.ebpf.ebpf_trace import ebpf_trace

TRACE_NAME = "trace.pstrace"
LOG_NAME = "ebpf.bpflog"
ORIGIN_NAME = "origin.json"

_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a log alone does not say."""

    layout: TensorLayout
    #: What was run; empty where a process was found running.
    command: tuple[str, ...] = ()


def new_folder(folder: Path) -> Path:
    """Make the folder of a recording; one that holds another recording is refused.

    Raises MeasurementError: it cannot be made, or holds a recording.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MeasurementError(f"{folder}: cannot be made ({error.strerror}); name another folder") from None
    for name in (TRACE_NAME, LOG_NAME, ORIGIN_NAME):
        if os.path.lexists(folder / name):
            raise MeasurementError(f"{folder}: holds {name} of another recording; name another folder")
    return folder


def write_origin(folder: Path, origin: Origin) -> None:
    """Write down how to read the log that will be in a folder.

    Raises MeasurementError: it cannot be written.
    """
    plain = {"schema": _SCHEMA, "layout": origin.layout.to_plain(), "command": masked_command(origin.command)}
    write_json(folder / ORIGIN_NAME, plain, MeasurementError)


def finish_recording(folder: Path) -> EngineTrace:
    """Turn the log of an ended recording into its trace; the log goes away once the trace is written.

    Raises MeasurementError: the log cannot be read, or the trace cannot be written; the log stays then.
    """
    trace = _from_log(folder)
    write_trace(folder / TRACE_NAME, trace)
    for name in (LOG_NAME, ORIGIN_NAME):
        (folder / name).unlink(missing_ok=True)
    return trace


def read_recording(path: Path) -> EngineTrace:
    """Read the trace of a folder, or a trace's file; a log that never became a trace is as good.

    Raises MeasurementError: there is neither, or what is there cannot be read.
    """
    if path.is_file():
        return read_trace(path)
    if (path / LOG_NAME).exists() and (path / ORIGIN_NAME).exists():  # a trace beside it was not written to its end
        return _from_log(path)
    if (path / TRACE_NAME).exists():
        return read_trace(path / TRACE_NAME)
    if (path / LOG_NAME).exists():
        return _from_log(path)
    what = f"holds no {TRACE_NAME}" if path.is_dir() else "is not there"
    raise MeasurementError(f"{path}: {what}; expected a folder that 'perfsuite trace' made, or a trace's file")


def _from_log(folder: Path) -> EngineTrace:
    path = folder / ORIGIN_NAME
    plain = plain_json(path, MeasurementError, "without it the log beside it is numbers")
    try:
        if plain["schema"] != _SCHEMA:
            raise MeasurementError(f"{path}: has schema {plain['schema']!r}, this suite reads {_SCHEMA}")
        layout, command = TensorLayout.from_plain(plain["layout"]), tuple(map(str, plain["command"]))
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(f"{path}: is damaged ({type(error).__name__}: {error})") from None
    return ebpf_trace(read_bpf_log(folder / LOG_NAME), layout, command=command)
