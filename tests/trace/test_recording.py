"""The folder of a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_trace import EventKind
from perfsuite.testing.bpf_logs import small_log, tensor_layout
from perfsuite.trace.recording import (
    LOG_NAME,
    ORIGIN_NAME,
    TRACE_NAME,
    Origin,
    finish_recording,
    new_folder,
    read_recording,
    write_origin,
)

COMMAND = ("llama-cli", "-p", "größer")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    log = small_log(2)
    log.end(1_000_000)
    log.write(tmp_path / LOG_NAME)
    write_origin(tmp_path, Origin(layout=tensor_layout(), command=COMMAND))
    return tmp_path


def test_a_finished_recording_is_the_trace_alone(recorded: Path) -> None:
    trace = finish_recording(recorded)
    assert ([each.name for each in recorded.iterdir()], trace.command, trace.cut) == ([TRACE_NAME], COMMAND, None)
    assert read_recording(recorded).events.tolist() == trace.events.tolist()
    assert read_recording(recorded / TRACE_NAME).command == COMMAND


def test_secrets_of_a_command_are_not_kept(recorded: Path) -> None:
    """A key that a server was started with is in no file of the folder, before the trace is made and after."""
    command = ("llama-server", "--api-key", "hunter2", "--hf-token=hunter2")
    write_origin(recorded, Origin(layout=tensor_layout(), command=command))
    assert b"hunter2" not in (recorded / ORIGIN_NAME).read_bytes()
    assert finish_recording(recorded).command == ("llama-server", "--api-key", "***", "--hf-token=***")
    assert b"hunter2" not in (recorded / TRACE_NAME).read_bytes()


def test_a_recording_that_was_never_finished_is_read_from_its_log(recorded: Path) -> None:
    """A suite that was killed left the recorder's log, which says up to where it goes."""
    content = (recorded / LOG_NAME).read_bytes()
    (recorded / LOG_NAME).write_bytes(content[: len(content) - 100])
    trace = read_recording(recorded)
    assert trace.cut is not None
    assert trace.of(EventKind.OPERATOR).size
    assert (recorded / LOG_NAME).exists()


def test_a_trace_that_was_not_written_to_its_end_is_read_from_its_log(recorded: Path) -> None:
    """A disk that was full while the trace was written leaves the whole log beside what there is of the trace."""
    log = (recorded / LOG_NAME).read_bytes()
    origin = (recorded / ORIGIN_NAME).read_bytes()
    whole = finish_recording(recorded)
    trace = (recorded / TRACE_NAME).read_bytes()
    (recorded / TRACE_NAME).write_bytes(trace[: len(trace) // 2])
    (recorded / LOG_NAME).write_bytes(log)
    (recorded / ORIGIN_NAME).write_bytes(origin)
    read = read_recording(recorded)
    assert read.cut is None
    assert read.events.tolist() == whole.events.tolist()


def test_a_log_that_cannot_be_read_stays(recorded: Path) -> None:
    """Nothing is thrown away, and without its origin nobody knows where a name lies."""
    (recorded / LOG_NAME).write_bytes(b"something else" * 100)
    with pytest.raises(MeasurementError, match=LOG_NAME):
        finish_recording(recorded)
    assert (recorded / LOG_NAME).exists()
    assert (recorded / ORIGIN_NAME).exists()
    (recorded / ORIGIN_NAME).unlink()
    with pytest.raises(MeasurementError, match="without it the log beside it is numbers"):
        read_recording(recorded)


@pytest.mark.parametrize("name", [TRACE_NAME, LOG_NAME, ORIGIN_NAME])
def test_a_recording_is_never_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(MeasurementError, match=f"holds {name} of another recording"):
        new_folder(tmp_path)
    assert (tmp_path / name).read_text() == "mine"
