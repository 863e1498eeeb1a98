"""A live queue without an engine: the native source alone, into which a test pushes phases itself."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.measure.live_publisher import Publication
from perfsuite.measure.live_queue import LiveQueue
from perfsuite.measure.native import declare_functions, native_dirs, native_fields


class NativeSpan(ctypes.Structure):
    _fields_ = native_fields((ctypes.c_int32, "phase repetition token n_tokens"), (ctypes.c_int64, "start_ns end_ns"))


_PRODUCER = (
    ("ps_live_map", ctypes.c_void_p, (ctypes.c_int,)),
    ("ps_live_unmap", None, (ctypes.c_void_p,)),
    ("ps_live_open", ctypes.c_bool, (ctypes.c_void_p, ctypes.c_int)),
    ("ps_live_pause", None, (ctypes.c_bool,)),
)


def live_library(folder: Path) -> ctypes.CDLL:
    """Compile and load the live queue; skip where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    native = next(place for place in native_dirs() if (place / "src" / "engine" / "live.c").exists())
    target = folder / "liblive.so"
    source = native / "src" / "engine" / "live.c"
    command = [compiler, "-std=gnu11", "-shared", "-fPIC", f"-I{native / 'include'}", str(source), "-o", str(target)]
    subprocess.run(command, check=True, timeout=60)
    return ctypes.CDLL(str(target))


@contextmanager
def producing(library: ctypes.CDLL, queue: LiveQueue) -> Iterator[None]:
    """Push to a queue as a worker does, through a mapping of its own."""
    declare_functions(library, *_PRODUCER)
    produced = library.ps_live_map(queue.memory_fd)
    assert library.ps_live_open(produced, queue.event_fd)
    try:
        yield
    finally:
        library.ps_live_close()
        library.ps_live_unmap(produced)


@contextmanager
def paused(library: ctypes.CDLL) -> Iterator[None]:
    library.ps_live_pause(True)
    yield
    library.ps_live_pause(False)


@contextmanager
def published(
    library: ctypes.CDLL, path: Path, *, opencl_log: Path | None = None, processors: frozenset[int] = frozenset()
) -> Iterator[None]:
    """Publish what is pushed meanwhile; an error says that the run broke off."""
    publication = Publication(library, path, processors)
    if opencl_log is not None:
        publication.follow(opencl_log)
    is_complete = False
    try:
        with producing(library, publication.queue):
            yield
        is_complete = True
    finally:
        publication.close(is_complete=is_complete)


def push(library: ctypes.CDLL, phase: int, token: int, start_ns: int, end_ns: int, *, repetition: int = 0) -> None:
    span = NativeSpan(phase=phase, repetition=repetition, token=token, n_tokens=1, start_ns=start_ns, end_ns=end_ns)
    library.ps_live_push(ctypes.byref(span))
