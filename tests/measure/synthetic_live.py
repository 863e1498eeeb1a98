"""A live queue without an engine: the native source alone, into which a test pushes phases itself."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from perfsuite.measure.llama_structs import NativeSpan
from perfsuite.measure.native import native_dirs


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


def push(library: ctypes.CDLL, phase: int, token: int, start_ns: int, end_ns: int, *, repetition: int = 0) -> None:
    """Push what the driver would."""
    span = NativeSpan(phase=phase, repetition=repetition, token=token, n_tokens=1, start_ns=start_ns, end_ns=end_ns)
    library.ps_live_push(ctypes.byref(span))
