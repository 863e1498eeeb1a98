"""Follows a process that runs llama.cpp with the eBPF recorder, from attaching to the finished trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import EngineError
from perfsuite.measure.ebpf import start_ebpf
from perfsuite.measure.ebpf_helper import find_helper
from perfsuite.measure.engine import Engine, library_build_id
from perfsuite.measure.engine_folders import include_folders
from perfsuite.measure.engine_process import refuse_other_user
from perfsuite.measure.plan import EbpfPlan
from perfsuite.measure.tensor_layout import LAYOUT_LIBRARY, layout_of, mapped_layout_library, tensor_layout
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.recording import LOG_NAME, Origin, write_origin

if TYPE_CHECKING:
    from perfsuite.measure.ebpf import EbpfRecording


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowRequest:
    """How a process is to be followed."""

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
