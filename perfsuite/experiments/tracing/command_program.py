"""``perfsuite trace -- COMMAND`` and ``--pid N``: follow a llama.cpp program that knows nothing of it."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import Progress, remarks
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import EngineError, MeasurementError, PerfsuiteError
from perfsuite.experiments.tracing.command_run import ebpf_plan, recording_folder, tell
from perfsuite.measure.ebpf import EbpfRecording, start_ebpf
from perfsuite.measure.ebpf_helper import find_helper
from perfsuite.measure.engine import Engine, include_folders, library_build_id
from perfsuite.measure.engine_process import await_engine, is_alive, refuse_other_user
from perfsuite.measure.environment import environment_engine
from perfsuite.measure.plan import EbpfPlan
from perfsuite.measure.tensor_layout import LAYOUT_LIBRARY, layout_of, mapped_layout_library, tensor_layout
from perfsuite.measure.traced_program import run_traced
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.trace.recording import LOG_NAME, Origin, finish_recording, write_origin

#: What follows a process, once it is told which one and into which folder.
_Follower: TypeAlias = Callable[..., AbstractContextManager[EbpfRecording]]


@contextmanager
def followed(
    pid: int,
    ebpf: EbpfPlan,
    engine: Engine,
    folder: Path,
    *,
    cache_dir: Path,
    command: Sequence[str] = (),
    ggml_include: Path | None = None,
) -> Iterator[EbpfRecording]:
    """Record a process into a folder until the end of the block; then the log is complete.

    The headers of `engine` say what a tensor looks like in a process that uses the same build; `ggml_include` is the
    folder of the process's own, if it is known, and they are looked for otherwise.

    Raises `MeasurementError`: the process is another user's or has no llama.cpp, its tensors look otherwise, or the
    helper cannot attach.
    """
    refuse_other_user(pid)  # before anything of that process is linked or run
    layout = _layout(pid, engine, cache_dir, ggml_include)
    write_origin(folder, Origin(layout=layout, command=tuple(command)))
    with start_ebpf(pid, replace(ebpf, log_path=str(folder / LOG_NAME)), layout) as recording:
        yield recording


def _layout(pid: int, engine: Engine, cache_dir: Path, ggml_include: Path | None) -> TensorLayout:
    """Return what tensors look like in the process: as the headers say that are its own, or as the engine's."""
    library = mapped_layout_library(pid)
    if ggml_include is not None:
        return layout_of((ggml_include,), library, cache_dir)
    if library_build_id(library) == library_build_id(engine.library(LAYOUT_LIBRARY)):
        return tensor_layout(engine, cache_dir)
    try:
        return layout_of(include_folders(library.parent), library, cache_dir)
    except EngineError as error:
        raise EngineError(f"process {pid}: {error}; or name the folder of its ggml.h by --ggml-include") from None


#: Longest to wait until a process that is said to run llama.cpp has it mapped.
_LOAD_LIMIT_S = 10.0
_POLL_S = 0.05


def trace_program(options: argparse.Namespace, program: Sequence[str]) -> int:
    """Run a program and follow it from the moment that it has llama.cpp; return its exit code."""
    follow, told = _follower(options), remarks("trace", options)  # before the program runs for nothing
    profile = find_profile(options.device)
    with recording_folder(options.output) as folder, taken_device(profile, "trace", options) as taken:
        follow = partial(follow, folder=folder, command=program)
        sys.stdout.flush()
        exit_code = run_traced(program, taken.environment, lambda pid: _followed_once_loaded(pid, follow, told))
        if not (folder / LOG_NAME).exists():
            raise MeasurementError(
                f"{program[0]}: ended without having llama.cpp as shared libraries; a program that starts another one "
                "is not followed into it: start that one itself, or name it by --pid"
            )
        tell(options, finish_recording(folder), folder)
    return exit_code


def _follower(options: argparse.Namespace) -> _Follower:
    ebpf = ebpf_plan(options, find_helper(user_cache()))
    include = options.ggml_include
    return partial(followed, ebpf=ebpf, engine=environment_engine(), cache_dir=user_cache(), ggml_include=include)


@contextmanager
def _followed_once_loaded(pid: int, follow: _Follower, told: Progress) -> Iterator[None]:
    """Stop the program while the probes are set, so that nothing that it does with llama.cpp is missed."""
    if not await_engine(pid):
        yield
        return
    os.kill(pid, signal.SIGSTOP)
    try:
        with _telling_notes(follow(pid), told):
            os.kill(pid, signal.SIGCONT)
            yield
    except PerfsuiteError as error:
        print(f"trace: process {pid} runs on and is not followed: {error}", file=sys.stderr, flush=True)
        raise
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def trace_pid(options: argparse.Namespace) -> int:
    """Follow a process until it ends, the duration is over, or Ctrl-C; following would disturb who has the device."""
    if not await_engine(options.pid, limit_s=_LOAD_LIMIT_S):
        raise MeasurementError(f"process {options.pid}: is not there, or has ended")
    follow, told, profile = _follower(options), remarks("trace", options), find_profile(options.device)
    with recording_folder(options.output) as folder, taken_device(profile, "trace", options):
        with _telling_notes(follow(options.pid, folder=folder), told) as recording:
            told.remark(f"process {options.pid} is followed; Ctrl-C ends that")
            with suppress(KeyboardInterrupt):
                _await_end(options.pid, recording, options.duration)
        tell(options, finish_recording(folder), folder)
    return 0


@contextmanager
def _telling_notes(following: AbstractContextManager[EbpfRecording], told: Progress) -> Iterator[EbpfRecording]:
    """Say what the recorder leaves out, such as counters that the machine lacks, and once it has ended what is new."""
    with following as recording:
        notes = recording.notes()
        for note in notes:
            told.remark(note)
        yield recording
    for note in recording.notes()[len(notes) :]:
        told.remark(note)


def _await_end(pid: int, recording: EbpfRecording, duration_s: float | None) -> None:
    end_s = math.inf if duration_s is None else time.monotonic() + duration_s
    while is_alive(pid) and not recording.has_ended() and time.monotonic() < end_s:
        time.sleep(_POLL_S)
