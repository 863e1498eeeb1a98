"""Rates by programs that are not ours, which bound the ceilings that are: NumPy, likwid-bench, STREAM and clpeak."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from xml.etree import ElementTree

import numpy as np

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.expectation.roofline.ceiling import CPU, IndependentRate, Resource
from perfsuite.measure import launch
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import DevicesPlan, IndependentPlan
from perfsuite.measure.probes import MEMORY_OVER_CACHE, largest_working_set
from perfsuite.units import format_count

#: Rows of the square matrices: large enough that a blocked product works from the caches.
_ORDERS = (1024, 2048)
_LEAST_REPETITIONS = 3
_VALUE_BYTES = 4


def blas_environment(n_threads: int) -> dict[str, str]:
    """Return the variables by which the BLAS libraries that NumPy comes with take their number of threads."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    return dict.fromkeys(names, str(n_threads))


def measure_numpy(*, n_threads: int, working_set_bytes: int, budget_ms: int) -> tuple[IndependentRate, ...]:
    """Measure a product of F32 matrices, and a copy and a sum of arrays on one thread, as NumPy knows no other.

    A product of two matrices of order n is 2 n³ FLOPs. ``np.copyto(a, b)`` moves two arrays, ``np.add(b, c, out=a)``
    three, as a triad does; the arrays together take ``working_set_bytes``.
    """
    share_ns = budget_ms * 1_000_000 // (len(_ORDERS) + 2)
    product = max(2 * order**3 / _least_s(_product(order), share_ns) for order in _ORDERS)
    pair, three = (np.ones((n, working_set_bytes // n // _VALUE_BYTES), dtype=np.float32) for n in (2, 3))
    copy_s = _least_s(lambda: np.copyto(pair[0], pair[1]), share_ns)
    add_s = _least_s(lambda: np.add(three[1], three[2], out=three[0]), share_ns)
    return (
        _rate(Resource.COMPUTE, "fp32", n_threads, product),
        _rate(Resource.BANDWIDTH, "copy", 1, pair.nbytes / copy_s),
        _rate(Resource.BANDWIDTH, "triad", 1, three.nbytes / add_s),
    )


def _product(order: int) -> Callable[[], object]:
    a, b = (np.full((order, order), value, dtype=np.float32) for value in (0.5, 0.25))
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out)


def _least_s(work: Callable[[], object], share_ns: int) -> float:
    work()
    times_ns: list[int] = []
    began_ns = time.perf_counter_ns()
    while len(times_ns) < _LEAST_REPETITIONS or time.perf_counter_ns() - began_ns < share_ns:
        start_ns = time.perf_counter_ns()
        work()
        times_ns.append(time.perf_counter_ns() - start_ns)
    return max(1, min(times_ns)) * 1e-9


def _rate(resource: Resource, kind: str, n_threads: int, best_per_s: float) -> IndependentRate:
    return IndependentRate(
        program="numpy", resource=resource, kind=kind, processor=CPU, n_threads=n_threads, best_per_s=best_per_s
    )


#: Time for NumPy; other programs take what they take.
BOUNDS_BUDGET_MS = 2_000

#: Benchmarks of likwid-bench, with and without AVX, by what they do to memory.
LIKWID_KINDS = {
    "load_avx": "read",
    "copy_avx": "copy",
    "stream_avx": "triad",
    "load": "read",
    "copy": "copy",
    "stream": "triad",
}
_MEGA, _GIGA = 1e6, 1e9
#: What clpeak measures: element of its XML, unit, and what that is with us.
_CLPEAK_PARTS = (
    ("global_memory_bandwidth", "gbps", Resource.BANDWIDTH, "read"),
    ("single_precision_compute", "gflops", Resource.COMPUTE, "fp32"),
)


def likwid_rate(text: str) -> IndependentRate:
    """Read one benchmark of likwid-bench: MByte/s are 10⁶ bytes of all arrays, loads and stores, in the mean.

    *Source*: likwid 5.2.2, bench/likwid-bench.c (``Data volume`` over ``Time``).
    """
    test = _found(text, "likwid-bench", r"^Test: (\w+)")
    if test not in LIKWID_KINDS:
        raise MeasurementError(f"likwid-bench ran {test}, expected one of {', '.join(LIKWID_KINDS)}")
    return IndependentRate(
        program="likwid-bench",
        resource=Resource.BANDWIDTH,
        kind=LIKWID_KINDS[test],
        processor=CPU,
        n_threads=int(_found(text, "likwid-bench", r"^Using (\d+) threads?$")),
        best_per_s=float(_found(text, "likwid-bench", r"^MByte/s:\s+([\d.]+)$")) * _MEGA,
    )


def stream_rates(text: str) -> tuple[IndependentRate, ...]:
    """Read STREAM's best rates of copy and triad, in 10⁶ bytes of all arrays; one thread where it does not say.

    *Source*: STREAM 5.10, stream.c (``bytes[]`` over ``mintime``).
    """
    threads = re.search(r"^Number of Threads counted = (\d+)", text, re.MULTILINE)
    return tuple(
        IndependentRate(
            program="stream",
            resource=Resource.BANDWIDTH,
            kind=name.lower(),
            processor=CPU,
            n_threads=int(threads[1]) if threads else 1,
            best_per_s=float(_found(text, "stream", rf"^{name}:\s+([\d.]+)\s")) * _MEGA,
        )
        for name in ("Copy", "Triad")
    )


def clpeak_rates(xml: str, *, platform_name: str, device_name: str) -> tuple[IndependentRate, ...]:
    """Read what clpeak reached on one device with the best of its vectors, in 10⁹ bytes or FLOPs.

    *Source*: clpeak 1.1.2, src/global_bandwidth.cpp (bytes that are read) and src/compute_sp.cpp (2 FLOPs a ``mad``).
    """
    device = _clpeak_device(xml, platform_name, device_name)
    return tuple(
        IndependentRate(
            program="clpeak",
            resource=resource,
            kind=kind,
            processor=device_name,
            n_threads=None,
            best_per_s=_clpeak_best(device, element, unit) * _GIGA,
        )
        for element, unit, resource, kind in _CLPEAK_PARTS
    )


def _clpeak_device(xml: str, platform_name: str, device_name: str) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(xml)  # nosec B314  # from a program that this command starts
    except ElementTree.ParseError as error:
        raise MeasurementError(f"clpeak: its XML cannot be read ({error})") from None
    for each in root.iter("platform"):
        for device in each.iter("device"):
            names = (each.get("name", "").strip(), device.get("name", "").strip())
            if names == (platform_name, device_name):
                return device
    raise MeasurementError(f"clpeak: knows no {device_name} of {platform_name}")


def _clpeak_best(device: ElementTree.Element, element: str, unit: str) -> float:
    part = device.find(element)
    if part is None or part.get("unit") != unit or not len(part):
        raise MeasurementError(f"clpeak: no {element} in {unit} in its XML")
    try:
        return max(float(width.text or "") for width in part)
    except ValueError as error:
        raise MeasurementError(f"clpeak: {element}: {error}") from None


def _found(text: str, program: str, pattern: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise MeasurementError(f"{program}: its output has no line like {pattern!r}")
    return match[1]


#: Programs that need not be there, each with what its file holds where others have a program of that name: ImageMagick
#: has a ``stream``, which is not McCalpin's.
PROGRAMS: Mapping[str, str | None] = {"likwid-bench": None, "stream": "STREAM version", "clpeak": None}
#: clpeak builds its kernels for every device, which takes tens of seconds on a processor.
LIMIT_S = 180.0


class Programs(Protocol):
    """The programs of a machine, and what runs them there."""

    @property
    def architecture(self) -> str:
        """As ``uname -m`` has it."""

    def absent(self) -> tuple[str, ...]:
        """Return which of `PROGRAMS` are not on the PATH, and ``numpy`` where there is no Python."""

    def output(self, command: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run a program with a few variables more, and return what it printed; `MeasurementError` where it fails."""

    def written(self, command: Sequence[str], option: str, environment: Mapping[str, str]) -> str | None:
        """Run a program that writes the file which an option names, and return that file's text; None without one."""

    def run(self, plan: IndependentPlan | DevicesPlan, environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Run a plan in a worker there, and return its payload."""


class OwnPrograms:
    """Those of this machine."""

    @property
    def architecture(self) -> str:
        """As ``uname -m`` has it."""
        return platform.machine()

    def absent(self) -> tuple[str, ...]:
        """Return the programs that are not on the PATH."""
        return absent_programs()

    def output(self, command: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run a program."""
        return _output(command, environment)

    def written(self, command: Sequence[str], option: str, environment: Mapping[str, str]) -> str | None:
        """Run a program that writes a file."""
        with work_folder() as folder:
            path = folder / "file"
            _output([*command, option, str(path)], environment)
            return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None

    def run(self, plan: IndependentPlan | DevicesPlan, environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Run a plan in a worker."""
        return launch.run_worker(plan, extra_environment=environment)


_OWN = OwnPrograms()


def absent_programs() -> tuple[str, ...]:
    """Return the programs that are not on the PATH, which give no rates."""
    return tuple(program for program in PROGRAMS if not _is_there(program))


def _is_there(program: str) -> bool:
    """Say whether a program is on the PATH, and is the one that is meant."""
    path, mark = shutil.which(program), PROGRAMS[program]
    if path is None or mark is None:
        return path is not None
    return mark.encode() in Path(path).read_bytes()


def all_rates(
    n_threads: int,
    platform: str | None,
    environment: Mapping[str, str],
    tell: Callable[[str], None],
    *,
    programs: Programs = _OWN,
    memory_bytes: int | None = None,
) -> tuple[IndependentRate, ...]:
    """Run every independent program that is installed, on one thread, on as many as asked, and on OpenCL.

    One that fails has measured nothing, and why is reported. `platform` and `environment` are those of the OpenCL
    device; `memory_bytes` is what is larger than the caches there, by default here.
    """
    found: list[IndependentRate] = []
    memory_bytes = memory_bytes or largest_working_set(n_threads, MEMORY_OVER_CACHE)
    for each in sorted({1, n_threads}):
        tell(f"independent programs, {format_count(each, 'thread')}")
        found += rates_on_processor(
            n_threads=each, working_set_bytes=memory_bytes, budget_ms=BOUNDS_BUDGET_MS, tell=tell, programs=programs
        )
    tell("independent programs, OpenCL")
    try:
        chosen = programs.run(DevicesPlan(platform=platform), environment)["chosen"]
    except (MeasurementError, OpenClError):
        return tuple(found)
    device = OpenClDevice(**chosen)
    return (*found, *attempted(lambda: rates_on_device(device, environment, programs=programs), tell))


def rates_on_processor(
    *,
    n_threads: int,
    working_set_bytes: int,
    budget_ms: int,
    tell: Callable[[str], None],
    programs: Programs = _OWN,
) -> tuple[IndependentRate, ...]:
    """Run the processor's programs that are there; a failure is reported."""
    runs: dict[str, Callable[[], tuple[IndependentRate, ...]]] = {
        "numpy": lambda: _numpy(n_threads, working_set_bytes, budget_ms, programs),
        "likwid-bench": lambda: _likwid(n_threads, working_set_bytes, programs),
        "stream": lambda: stream_rates(programs.output(["stream"], blas_environment(n_threads))),
    }
    absent = programs.absent()
    return tuple(rate for program, run in runs.items() if program not in absent for rate in attempted(run, tell))


def attempted(
    run: Callable[[], tuple[IndependentRate, ...]], tell: Callable[[str], None]
) -> tuple[IndependentRate, ...]:
    """Return what a program measured; where it fails, tell why, and return nothing."""
    try:
        return run()
    except MeasurementError as error:
        tell(str(error))
        return ()


def _numpy(n_threads: int, working_set_bytes: int, budget_ms: int, programs: Programs) -> tuple[IndependentRate, ...]:
    plan = IndependentPlan(n_threads=n_threads, working_set_bytes=working_set_bytes, budget_ms=budget_ms)
    payload = programs.run(plan, blas_environment(n_threads))
    return tuple(IndependentRate.from_plain(plain) for plain in payload["rates"])


def rates_on_device(
    device: OpenClDevice, environment: Mapping[str, str], *, programs: Programs = _OWN
) -> tuple[IndependentRate, ...]:
    """Run clpeak, if it is there, and return what it reached on a device; the rest as for `independent_rates`."""
    if "clpeak" in programs.absent():
        return ()
    xml = programs.written(["clpeak", "--global-bandwidth", "--compute-sp"], "--xml-file", environment)
    if xml is None:
        raise MeasurementError("clpeak: wrote no XML; run it by hand to see why")
    return clpeak_rates(xml, platform_name=device.platform_name, device_name=device.device_name)


def _likwid(n_threads: int, working_set_bytes: int, programs: Programs) -> tuple[IndependentRate, ...]:
    """Run a read, a copy and a triad for a second each; its kB are 1000 bytes, ``N`` the whole machine."""
    suffix = "_avx" if programs.architecture in ("x86_64", "AMD64") else ""
    workgroup = f"N:{working_set_bytes // 1000}kB:{n_threads}"
    return tuple(
        likwid_rate(programs.output(["likwid-bench", "-t", f"{test}{suffix}", "-s", "1", "-w", workgroup], {}))
        for test in ("load", "copy", "stream")
    )


def _output(command: Sequence[str], environment: Mapping[str, str]) -> str:
    variables = [f"{name}={value}" for name, value in environment.items()]
    try:
        done = subprocess.run(
            ["env", *variables, *command], capture_output=True, text=True, errors="replace", timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise late_program(command[0], LIMIT_S) from None
    if done.returncode:
        raise failed_program(command[0], done.returncode, done.stdout + done.stderr)
    return done.stdout


def late_program(name: str, limit_s: float) -> MeasurementError:
    """Return the error for a program that did not end."""
    return MeasurementError(f"{name}: still running after {limit_s:.0f} s and was stopped")


def failed_program(name: str, code: int | None, printed: str) -> MeasurementError:
    """Return the error for a program that did not end well."""
    lines = printed.strip().splitlines() or ["it printed nothing"]
    return MeasurementError(f"{name}: {'was killed' if code is None else f'returned {code}'}: {lines[-1]}")
