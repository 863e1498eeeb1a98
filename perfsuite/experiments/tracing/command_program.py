"""``perfsuite trace -- COMMAND`` and ``--pid N``: follow a llama.cpp program that knows nothing of it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import Progress, remarks
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import EngineError, MeasurementError, PerfsuiteError
from perfsuite.experiments.tracing.command_lines import recording_folder, tell
from perfsuite.measure.ebpf import start_ebpf
from perfsuite.measure.ebpf_helper import find_helper
from perfsuite.measure.engine import Engine, include_folders, library_build_id
from perfsuite.measure.engine_process import await_engine, is_alive, refuse_other_user
from perfsuite.measure.environment import environment_engine
from perfsuite.measure.plan import EbpfPlan
from perfsuite.measure.tensor_layout import LAYOUT_LIBRARY, layout_of, mapped_layout_library, tensor_layout
from perfsuite.measure.traced_program import run_traced
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.trace_levels import DEFAULT_LEVELS, TraceLevel, parse_levels
from perfsuite.trace.recording import LOG_NAME, Origin, finish_recording, write_origin

if TYPE_CHECKING:
    from perfsuite.measure.ebpf import EbpfRecording


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowRequest:
    """How to follow a process."""

    levels: TraceLevel
    #: Whose headers say what a tensor looks like in a process that uses the same build.
    engine: Engine
    cache_dir: Path
    buffer: str = "ring"
    floor_tokens_per_s: float | None = None
    counters: tuple[str, ...] = ()
    #: Headers of the ggml that the process uses, where they are not to be looked for.
    ggml_include: Path | None = None


@contextmanager
def followed(pid: int, request: FollowRequest, folder: Path, command: Sequence[str] = ()) -> Iterator[EbpfRecording]:
    """Record a process into a folder until the end of the block; then the log is complete.

    Raises `MeasurementError`: the process is another user's or has no llama.cpp, its tensors look otherwise, or there
    is no helper.
    """
    refuse_other_user(pid)  # before anything of that process is linked or run
    helper = find_helper(request.cache_dir)
    layout = _layout(pid, request)
    write_origin(folder, Origin(layout=layout, command=tuple(command)))
    ebpf = EbpfPlan(
        helper=str(helper),
        log_path=str(folder / LOG_NAME),
        levels=int(request.levels),
        buffer=request.buffer,
        floor_tokens_per_s=request.floor_tokens_per_s,
        counters=request.counters,
    )
    with start_ebpf(pid, ebpf, layout) as recording:
        yield recording


def _layout(pid: int, request: FollowRequest) -> TensorLayout:
    """Return what tensors look like in the process: as the headers say that are its own, or as the engine's."""
    library, engine = mapped_layout_library(pid), request.engine
    if request.ggml_include is not None:
        return layout_of((request.ggml_include,), library, request.cache_dir)
    if library_build_id(library) == library_build_id(engine.library(LAYOUT_LIBRARY)):
        return tensor_layout(engine, request.cache_dir)
    try:
        return layout_of(include_folders(library.parent), library, request.cache_dir)
    except EngineError as error:
        raise EngineError(f"process {pid}: {error}; or name the folder of its ggml.h by --ggml-include") from None


#: Longest to wait until a process that is said to run llama.cpp has it mapped.
_LOAD_LIMIT_S = 10.0
_POLL_S = 0.05


def trace_program(options: argparse.Namespace, program: Sequence[str]) -> int:
    """Run a program and follow it from the moment that it has llama.cpp; return its exit code."""
    request, told = follow_request(options), remarks("trace", options)
    find_helper(request.cache_dir)  # before the program runs for nothing
    profile = find_profile(options.device)
    with recording_folder(options.output) as folder, taken_device(profile, "trace", options) as taken:
        sys.stdout.flush()
        exit_code = run_traced(
            program, taken.environment, lambda pid: _followed_once_loaded(pid, request, folder, program, told)
        )
        if not (folder / LOG_NAME).exists():
            raise MeasurementError(
                f"{program[0]}: ended without having llama.cpp as shared libraries; a program that starts another one "
                "is not followed into it: start that one itself, or name it by --pid"
            )
        tell(options, finish_recording(folder), folder)
    return exit_code


@contextmanager
def _followed_once_loaded(
    pid: int, request: FollowRequest, folder: Path, program: Sequence[str], told: Progress
) -> Iterator[None]:
    """Stop the program while the probes are set, so that nothing that it does with llama.cpp is missed."""
    if not await_engine(pid):
        yield
        return
    os.kill(pid, signal.SIGSTOP)
    try:
        with followed(pid, request, folder, program) as recording:
            n_told = tell_notes(recording, told)
            os.kill(pid, signal.SIGCONT)
            yield
        tell_notes(recording, told, n_told)
    except PerfsuiteError as error:
        print(f"trace: process {pid} runs on and is not followed: {error}", file=sys.stderr, flush=True)
        raise
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def trace_pid(options: argparse.Namespace) -> int:
    """Follow a process until it ends, the duration is over, or Ctrl-C; following would disturb who has the device."""
    request, told = follow_request(options), remarks("trace", options)
    if not await_engine(options.pid, limit_s=_LOAD_LIMIT_S):
        raise MeasurementError(f"process {options.pid}: is not there, or has ended")
    profile = find_profile(options.device)
    with recording_folder(options.output) as folder, taken_device(profile, "trace", options):
        with followed(options.pid, request, folder) as recording:
            n_told = tell_notes(recording, told)
            told.remark(f"process {options.pid} is followed; Ctrl-C ends that")
            with suppress(KeyboardInterrupt):
                _await_end(options.pid, recording, options.duration)
        tell_notes(recording, told, n_told)
        tell(options, finish_recording(folder), folder)
    return 0


def tell_notes(recording: EbpfRecording, told: Progress, n_told: int = 0) -> int:
    """Say what the recorder leaves out, such as counters that the machine lacks; return how many there are now."""
    notes = recording.notes()
    for note in notes[n_told:]:
        told.remark(note)
    return len(notes)


def _await_end(pid: int, recording: EbpfRecording, duration_s: float | None) -> None:
    began_s = time.monotonic()
    while (
        is_alive(pid) and not recording.has_ended() and (duration_s is None or time.monotonic() - began_s < duration_s)
    ):
        time.sleep(_POLL_S)


def follow_request(options: argparse.Namespace) -> FollowRequest:
    """Return what the options say of how to follow a process."""
    return FollowRequest(
        levels=parse_levels(options.trace or DEFAULT_LEVELS, "--trace"),
        engine=environment_engine(),
        cache_dir=user_cache(),
        buffer=options.buffer or "ring",
        floor_tokens_per_s=options.trace_floor,
        counters=tuple(options.counters.split(",")) if options.counters else (),
        ggml_include=options.ggml_include,
    )
