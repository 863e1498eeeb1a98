"""Tells what the suite makes of a driver's faults: which phases and kernels stay valid, and how far END - START is off.

    python tools/driver_faults.py                     # every fault at every rate, the table of docs/opencl-tracing.md
    python tools/driver_faults.py --quirks            # the drivers' own quirks
    python tools/driver_faults.py --only submit_late --rates 0.1

A program of three kernels runs step by step under the tracing layer, below which a layer of faults
(native/src/opencl_faults) alters what the driver says of its kernels, and writes down what it said in truth. The time
of each kernel in a step is then reduced from both in the same way. The device is a steady one that the layer makes up,
so that the table is the same on a busy machine; --real takes the times of the driver. The exit code is 1 where a phase
is not valid, or where a valid kernel is further off than 1 % and than the error that is stated of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np

from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.opencl_backend import find_opencl_layers, layer_environment
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.opencl_commands import CommandType, OpenClTrace
from perfsuite.records.opencl_log_file import read_opencl_log
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, KernelSequence, span_kernels
from perfsuite.trace.opencl.kernel_samples import MappedRun, map_run
from perfsuite.trace.opencl.stamps import STAMPS
from perfsuite.trace.samples import reduce_phases

_NATIVE = Path(__file__).parents[1] / "native"
_SOURCE = _NATIVE / "src" / "opencl_faults" / "faults_layer.c"
_LIMIT_S = 120

#: What stands for a device whose kernels take the same time whatever else the machine does: 80 to 180 us here.
STEADY_DEVICE = "steady amount=20000"

RATES = (0.001, 0.01, 0.1, 0.5, 1.0)

#: Faults by the name of their row; the rate is put in.
FAULTS: Mapping[str, str] = {
    "START before SUBMIT (SUBMIT taken late)": "submit_late rate={rate} amount=300000",
    "START before SUBMIT (START too early)": "start_early rate={rate} amount=20000",
    "END before START": "end_early rate={rate} amount=1000",
    "END is START": "no_length rate={rate}",
    "QUEUED is 0": "zero_queued rate={rate}",
    "SUBMIT is 0": "zero_submit rate={rate}",
    "START is 0": "zero_start rate={rate}",
    "END is 0": "zero_end rate={rate}",
    "all are 0": "zero_all rate={rate}",
    "all not available": "none_all rate={rate}",
    "QUEUED strays by 5 ms": "queued_stray rate={rate} amount=5000000",
}

#: Faults of a clock, a queue or a name, which have no rate.
WHOLE_FAULTS: Mapping[str, str] = {
    "none": "",
    "ticks of 52.083 ns": "tick amount=52.0833333333",
    "ticks of 80 ns": "tick amount=80",
    "ticks of 1 us": "tick amount=1000",
    "clock fast by 200 ppm": "drift amount=200",
    "no timer": "no_timer",
    "profiling slows each launch by 200 us": "slow amount=200000",
    "names that change": "rename",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """What users report of a vendor's driver."""

    vendor: str
    #: As PERFSUITE_OPENCL_FAULTS takes them.
    faults: str
    #: The threads.
    sources: tuple[str, ...]


QUIRKS = (
    Quirk(
        vendor="Adreno",
        faults="tick amount=52.0833333333; zero_submit rate=0.01",
        sources=("19.2 MHz counter; zeros: no thread found, as darktable-org/darktable#21122 has of another driver",),
    ),
    Quirk(
        vendor="Mali",
        faults="tick amount=1000; no_timer",
        sources=("KhronosGroup/OpenCL-CTS#753 and #1150: the timer's base was never tested against profiling's",),
    ),
    Quirk(
        vendor="PowerVR",
        faults="rename; none_queued rate=0.1",
        sources=("CHIP-SPV/chipStar#828: names of kernels are mangled; missing times: no thread found",),
    ),
    Quirk(
        vendor="NVIDIA",
        faults="tick amount=32; submit_late rate=0.2 amount=500000; no_timer",
        sources=("pocl/pocl#870: SUBMIT after START and END", "wolfpld/tracy#171: no timer, calibrated by an event"),
    ),
    Quirk(
        vendor="Intel",
        faults="tick amount=83.3333333333; submit_late rate=0.5 amount=336875; no_length rate=0.02; slow amount=20000",
        sources=(
            "intel/compute-runtime#344: SUBMIT by a clock of 1 ms, 337 us after START",
            "intel/opencl-intercept-layer#75: START is END",
            "CHIP-SPV/chipStar#814: 1.13 to 1.80 times faster without profiling",
        ),
    ),
)

#: Three kernels of different length, ten launches of each a step, the queue full or empty by turns.
_PROGRAM = """
import json, os, sys, time
import numpy as np, pyopencl as cl
device = cl.get_platforms()[int(sys.argv[1])].get_devices()[0]
source = '''
__kernel void short_one(__global float *a) {
    size_t i = get_global_id(0); float x = a[i]; for (int k = 0; k < 400; k++) x = x * 0.999f + 0.001f; a[i] = x; }
__kernel void middle_one(__global float *a) {
    size_t i = get_global_id(0); float x = a[i]; for (int k = 0; k < 2000; k++) x = x * 0.999f + 0.001f; a[i] = x; }
__kernel void long_one(__global float *a) {
    size_t i = get_global_id(0); float x = a[i]; for (int k = 0; k < 8000; k++) x = x * 0.999f + 0.001f; a[i] = x; }
'''
context = cl.Context([device])
program = cl.Program(context, source).build()
queue = cl.CommandQueue(context)
memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096 * 4)
kernels = [cl.Kernel(program, name) for name in ("short_one", "middle_one", "long_one")]
for kernel in kernels:
    kernel.set_args(memory)
    for _ in range(3):
        cl.enqueue_nd_range_kernel(queue, kernel, (4096,), (64,))
queue.finish()
spans = []
for step in range(int(sys.argv[2])):
    begin_ns = time.monotonic_ns()
    for _ in range(10):
        for kernel in kernels:
            cl.enqueue_nd_range_kernel(queue, kernel, (4096,), (64,))
            if step % 4 == 3:
                queue.finish()
    queue.finish()
    spans.append((begin_ns, time.monotonic_ns()))
print(json.dumps(spans))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyRun:
    """One process: what the suite recorded, and what the driver said before it was altered."""

    record: EngineRecord
    trace: OpenClTrace
    #: By launch: the four times in truth.
    truth_ns: Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the suite makes of a run."""

    n_phases: int
    n_valid_phases: int
    n_kernels: int
    n_valid_kernels: int
    #: Of the valid kernels: the largest distance of a time from that in truth, over it; None where none is valid.
    error_ratio: float | None
    #: And the largest error that is stated of one.
    stated_ratio: float
    #: Kernels further off than 1 % and than is stated of them.
    n_silently_wrong: int
    #: Whether the driver's odd times were told, or nothing about them was odd.
    notes: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What runs need: the layers, and the variables that make OpenCL visible."""

    tracing_layer: Path
    faults_layer: Path
    environment: Mapping[str, str]
    platform: int


def open_bench(folder: Path) -> Bench:
    """Build the layers into a folder, and find the device.

    Raises NativeBuildError: a layer does not build; OpenClError: there is no device.
    """
    environment = {**os.environ, **opencl_environment(folder, inherited=os.environ.get("OCL_ICD_VENDORS"))}
    usable = "'FPGA' not in each.name and each.get_devices()"  # Intel's emulator comes with its runtime
    script = f"import pyopencl as cl; print([bool({usable}) for each in cl.get_platforms()].index(True))"
    found = _child(["-c", script], environment)
    return Bench(
        tracing_layer=find_opencl_layers(folder).tracing,
        faults_layer=build_faults_layer(folder),
        environment=environment,
        platform=int(found),
    )


def build_faults_layer(folder: Path) -> Path:
    """Compile the layer of faults."""
    made = folder / "libperfsuite_cl_faults.so"
    flags = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared", "-Wl,-Bsymbolic,-z,nodelete")
    subprocess.run(["cc", *flags, "-DCL_TARGET_OPENCL_VERSION=300", str(_SOURCE), "-lm", "-o", str(made)], check=True)
    return made


def run_with(bench: Bench, faults: str, *, seed: int = 1, n_steps: int = 40, device: str = STEADY_DEVICE) -> FaultyRun:
    """Run the program once with a driver that has these faults."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        layers = layer_environment(bench.tracing_layer, folder)
        environment = {
            **bench.environment,
            **layers,
            "OPENCL_LAYERS": f"{bench.faults_layer}:{layers['OPENCL_LAYERS']}",
            "PERFSUITE_OPENCL_FAULTS": f"{faults}; {device}",
            "PERFSUITE_OPENCL_FAULTS_SEED": str(seed),
            "PERFSUITE_OPENCL_FAULTS_TRUTH": str(folder / "truth"),
            "PYTHONWARNINGS": "ignore",
        }
        spans = json.loads(_child(["-c", _PROGRAM, str(bench.platform), str(n_steps)], environment))
        (log,) = folder.glob("opencl-*.log")
        trace = read_opencl_log(log)
        lines = [line.split() for line in (folder / "truth").read_text().splitlines()]
    truth = {int(number): tuple(map(int, times)) for number, _, *times in lines}
    made = tuple(
        Span(phase=Phase.DECODE, repetition=0, token=step, n_tokens=1, start_ns=begin_ns, end_ns=end_ns)
        for step, (begin_ns, end_ns) in enumerate(spans)
    )
    record = EngineRecord(engine_version="a program of three kernels", spans=made, graphs=(), n_dropped=0)
    return FaultyRun(record=record, trace=trace, truth_ns=[truth[number] for number in range(len(truth))])


def in_truth(run: FaultyRun) -> OpenClTrace:
    """Return the trace with the times that the driver gave."""
    commands = run.trace.commands.copy()
    kernels = np.flatnonzero(commands["type"] == CommandType.KERNEL)
    if kernels.size != len(run.truth_ns):
        raise SystemExit(f"{kernels.size} kernels recorded, {len(run.truth_ns)} in truth")
    for name, times_ns in zip(STAMPS, zip(*run.truth_ns, strict=True), strict=True):
        commands[name][kernels] = times_ns
    commands["flags"][kernels] &= 0xFFEF  # CommandFlag.NO_PROFILE
    return replace(run.trace, commands=commands)


def outcome_of(run: FaultyRun) -> Outcome:
    """Reduce what was recorded and what was true, and compare."""
    learnt = KernelMapping(
        sequences=(KernelSequence(phase=Phase.DECODE, kernels=names, roles=names),)
        if (names := span_kernels(run.trace, run.record.spans[0]))
        else ()
    )
    found, true = (map_run(run.record, align(each), learnt) for each in (run.trace, in_truth(run)))
    phases = reduce_phases(run.record, {phase: [each.traced for each in of] for phase, of in found.phases.items()})
    expected_ns = median(span.duration_ns for span in run.record.spans)
    found_ns, true_ns = _kernel_ns(found), _kernel_ns(true)
    valid = [name for name in found_ns if not found.problems and (Phase.DECODE, name) not in found.kernel_problems]
    errors = {name: abs(found_ns[name] / true_ns[name] - 1) for name in valid}
    stated = {name: found.error_ratio.get((Phase.DECODE, name), 0.0) for name in valid}
    return Outcome(
        n_phases=1,
        n_valid_phases=int(phases.phase_ns.get(Phase.DECODE) == round(expected_ns)),
        n_kernels=len(true_ns),
        n_valid_kernels=len(valid),
        error_ratio=max(errors.values(), default=None),
        stated_ratio=max(stated.values(), default=0.0),
        n_silently_wrong=sum(errors[name] > max(0.01, stated[name]) for name in valid),
        notes=found.notes,
        problems=(*found.problems, *found.kernel_problems.values()),
    )


def _kernel_ns(mapped: MappedRun) -> dict[str, float]:
    steps = mapped.phases[Phase.DECODE]
    return {name: median(each.kernel_ns[name] for each in steps) for name in steps[0].kernel_ns}


def _child(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=_LIMIT_S)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def _rows(options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Yield what each row is called, its rate, and its faults."""
    if options.quirks:
        yield from ((each.vendor, "-", each.faults) for each in QUIRKS)
        return
    for name, faults in FAULTS.items():
        yield from ((name, f"{100 * rate:g} %", faults.format(rate=rate)) for rate in options.rates)
    yield from ((name, "-", faults) for name, faults in WHOLE_FAULTS.items())


def _table_line(name: str, rate: str, found: Outcome) -> str:
    error = "-" if found.error_ratio is None else f"{100 * found.error_ratio:.2f} %"
    phases, kernels = f"{found.n_valid_phases} of {found.n_phases}", f"{found.n_valid_kernels} of {found.n_kernels}"
    return f"| {name} | {rate} | {phases} | {kernels} | {error} | {100 * found.stated_ratio:.2f} % |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quirks", action="store_true", help="the drivers' quirks in place of single faults")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose faults contain TEXT")
    parser.add_argument("--rates", type=float, nargs="+", default=RATES, metavar="RATIO")
    parser.add_argument("--steps", type=int, default=40, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", action="store_true", help="the driver's times in place of a steady device's")
    options = parser.parse_args()
    device = "" if options.real else STEADY_DEVICE
    with tempfile.TemporaryDirectory() as folder:
        bench = open_bench(Path(folder))
        print(f"{date.today()}; {options.steps} steps of 30 launches, seed {options.seed}\n")
        print("| fault | rate | phases valid | kernels valid | END - START off by at most | stated |")
        print("|---|---|---|---|---|---|", flush=True)
        bad = 0
        for name, rate, faults in _rows(options):
            if options.only in faults:
                found = outcome_of(run_with(bench, faults, seed=options.seed, n_steps=options.steps, device=device))
                bad += found.n_silently_wrong + found.n_phases - found.n_valid_phases
                print(_table_line(name, rate, found), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
