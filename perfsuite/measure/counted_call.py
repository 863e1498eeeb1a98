"""Counts a call of a Python function, in a process where as little else as possible makes a difference."""

from __future__ import annotations

import hashlib
import json
import pickle  # nosec B403  # what is read is a function and arguments of the test itself
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.measure.counting import CountingTool, counted_command
from perfsuite.measure.environment import program_environment
from perfsuite.measure.launch import ONE_BLAS_THREAD, kill_worker, last_line, signal_name
from perfsuite.records.counts import METRICS, Counts, PythonBuild, read_rows
from perfsuite.records.whole_file import file_digest

_CHILD = Path(__file__).with_name("counted_child.py")

#: Calls in a process, of which the least counts: Python learns the types of a function's values in the first ten.
_N_CALLS = 14

#: What else would make a difference: the seed of strings' hashes, threads of a BLAS, and heaps that threads share,
#: which they do from so many on, by the number of processors. Python's own allocator keeps what earlier work left.
_ENVIRONMENT = {**ONE_BLAS_THREAD, "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "MALLOC_ARENA_MAX": "1000"}

#: What of a process is Python: libraries that it starts with.
_PYTHON_LIBRARY = re.compile(r"(libpython3|libc|libm|ld-linux|ld-musl)\b.*\.so\b.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCall:
    """A function that another process can import, and what it is called with."""

    pickled: bytes
    #: What is imported first, and from where.
    modules: tuple[str, ...]
    path: tuple[str, ...]


def counted_call(function: Callable[..., object], arguments: tuple[object, ...], test: ModuleType) -> CountedCall:
    """Return a call that is made in another process; `test` is the module of the test that asks for it.

    Raises MeasurementError: the function is none that a module holds, or an argument cannot be pickled.
    """
    if not callable(function):
        raise MeasurementError(f"{function!r} is no function; give the function, and then its arguments")
    try:
        pickled = pickle.dumps((function, arguments))
    except Exception as error:
        todo = "give a function of a module, no lambda or inner one, and arguments that can be pickled"
        raise MeasurementError(f"another process cannot have the call: {error}; {todo}") from None
    holder = sys.modules.get(getattr(function, "__module__", None) or "")
    modules = {each.__name__: each for each in (test, holder) if each is not None and each.__name__ != "__main__"}
    return CountedCall(
        pickled=pickled,
        modules=tuple(modules),
        path=tuple(dict.fromkeys((*_roots(modules.values()), *filter(None, sys.path)))),
    )


def _roots(modules: Iterable[ModuleType]) -> Iterable[str]:
    """Return the folders by which modules have their names, as far as they are not on the path."""
    for module in modules:
        parts = module.__name__.split(".")
        file = Path(module.__file__ or "") if getattr(module, "__file__", None) else None
        if file is not None and (*file.parts[-len(parts) : -1], file.stem) == tuple(parts):
            root = str(file.parents[len(parts) - 1])
            if root not in sys.path:
                yield root


def count_call(call: CountedCall, tool: CountingTool, *, limit_s: float) -> Counts:
    """Count a call that is warm: each count is the least of the calls of one process.

    Raises MeasurementError: the function raised, ended its process, or ran past `limit_s`.
    """
    with work_folder() as folder:
        job = (call.path, call.modules, call.pickled, _N_CALLS, str(folder / "answer"))
        (folder / "job").write_bytes(pickle.dumps(job))
        readings = _readings(folder, tool, limit_s)
        rows = read_rows(folder / "rows")
    counters = np.array([rows[name] for name in METRICS], np.int64)
    places = np.searchsorted(rows["instructions"], readings)
    least = (counters[:, places[1::2]] - counters[:, places[::2]]).min(axis=1)
    return Counts(**dict(zip(METRICS, least.tolist(), strict=True)))


def _readings(folder: Path, tool: CountingTool, limit_s: float) -> list[int]:
    """Run the job of a folder, and return what the clock said before and after each call."""
    command, environment = counted_command(tool, [sys.executable, str(_CHILD)], rows=str(folder / "rows"))
    libraries = program_environment({}).get("LD_LIBRARY_PATH")
    environment |= _ENVIRONMENT | ({"LD_LIBRARY_PATH": libraries} if libraries else {})
    printed = folder / "printed"
    with (folder / "job").open("rb") as job, printed.open("wb") as errors:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=job,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            told = f"it was still running after {limit_s:g} s, and counting takes some fifty times as long"
            raise MeasurementError(f"{told}; count less, or give limit_s") from None
        finally:
            kill_worker(process)
    if not (folder / "answer").exists():
        how = f"by {signal_name(-status)}" if status < 0 else f"with status {status}"
        raise MeasurementError(f"it ended its process {how}: {last_line(printed.read_text(errors='replace'))}")
    answer = json.loads((folder / "answer").read_bytes())
    if "error" in answer:
        raise MeasurementError(answer["error"])
    return list(answer["readings"])


@cache
def python_build() -> PythonBuild:
    """Return which Python this process runs: a count holds for that alone.

    Raises MeasurementError: a file of it cannot be read.
    """
    try:
        mapped = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
        libraries = sorted(path for path in mapped if _PYTHON_LIBRARY.fullmatch(Path(path).name))
        has_avx2 = " avx2 " in Path("/proc/cpuinfo").read_text()
        digests = [file_digest(Path(path)) for path in (sys.executable, *libraries)]
    except OSError as error:
        raise MeasurementError(f"{error.filename}: {error.strerror}; is this Python's own file there?") from error
    return PythonBuild(
        version=f"{platform.python_implementation()} {' '.join(sys.version.split())}",
        digest=hashlib.sha256("".join(digests).encode()).hexdigest(),
        processor=f"{platform.machine()} with AVX2" if has_avx2 else platform.machine(),
    )
