"""The tracing layer under real programs: they compute and see what they would without it; it records all commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from perfsuite.errors import NativeBuildError
from perfsuite.measure.opencl_backend import OpenClLayers, find_opencl_layers, layer_environment
from perfsuite.records.opencl_commands import CommandFlag, CommandType, OpenClTrace
from perfsuite.records.opencl_log_file import read_opencl_log

from .opencl_children import visible_opencl

_LIMIT_S = 120

_PRELUDE = """
import ctypes, hashlib, os, sys, threading
import numpy as np, pyopencl as cl
device = cl.get_platforms()[int(os.environ["PLATFORM"])].get_devices()[0]
SOURCE = '''
__kernel void add(__global float *a, __global const float *b, float c) {
    size_t i = get_global_id(0); a[i] = a[i] * 0.5f + b[i] * c; }
__kernel void spin(__global float *a, int n) {
    size_t i = get_global_id(0); float x = a[i]; for (int k = 0; k < n; k++) x = x * 0.999f + 0.001f; a[i] = x; }
'''
context = cl.Context([device])
program = cl.Program(context, SOURCE).build()
N = 4096
def buffer(seed, n=N):
    values = np.random.default_rng(seed).random(n, dtype=np.float32)
    return cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
def tell(queue, *buffers):
    for each in buffers:
        out = np.empty(each.size // 4, np.float32)
        cl.enqueue_copy(queue, out, each)
        print(hashlib.sha256(out.tobytes()).hexdigest())
"""

_LAYER = """
path = next(line.split()[-1] for line in open("/proc/self/maps") if "libperfsuite_cl_layer" in line)
layer = ctypes.CDLL(path)
layer.ps_cl_flush.argtypes = [ctypes.c_int64]
layer.ps_cl_flush.restype = layer.ps_cl_duplicate.restype = ctypes.c_bool
layer.ps_cl_n_lost.restype = ctypes.c_uint64
"""

#: Every kind of command, and everything that the layer hides.
_PLAIN = """
queue = cl.CommandQueue(context)
asked = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
a, b = buffer(1), buffer(2, 2 * N)
events = [program.add(queue, (N,), (64,), a, b, np.float32(i)) for i in range(20)]
print([event.get_info(cl.event_info.REFERENCE_COUNT) for event in events])
queue.finish()  # the other queue changes the same buffer
for event in (events[0], program.spin(asked, (N,), None, a, np.int32(9))):
    event.wait()
    try:
        print(event.profile.end > event.profile.start > 0)
    except cl.RuntimeError as error:
        print(error)
asked.finish()
cl.enqueue_fill_buffer(queue, b, np.float32(3), 0, 400)
cl.enqueue_copy(queue, a, b, byte_count=800)
mapped, _ = cl.enqueue_map_buffer(queue, a, cl.map_flags.WRITE, 0, (N,), np.float32)
mapped[7] = 1
mapped.base.release(queue)
cl.enqueue_marker(queue)
cl.enqueue_barrier(queue)
tell(queue, a, b)
for each in (queue, asked):
    print(each.properties, each.reference_count, each.get_info(cl.command_queue_info.PROPERTIES_ARRAY))
print(context.reference_count, a.reference_count, program.add.reference_count)
"""

_OUT_OF_ORDER = """
queue = cl.CommandQueue(context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
a, b = buffer(1), buffer(2)
gate = cl.UserEvent(context)
late = program.spin(queue, (N,), None, a, np.int32(100), wait_for=[gate])
for _ in range(50):
    program.spin(queue, (N,), None, b, np.int32(10)).wait()
print(late.command_execution_status > cl.command_execution_status.COMPLETE)
gate.set_status(cl.command_execution_status.COMPLETE)
queue.finish()
tell(queue, a, b)
"""

_THREADS = """
def work(seed):
    context = cl.Context([device])
    kernel = cl.Program(context, SOURCE).build().spin
    values = np.random.default_rng(seed).random(N, dtype=np.float32)
    queue, other = cl.CommandQueue(context), cl.CommandQueue(context)
    a = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
    for i in range(200):
        done = kernel(queue if i % 2 else other, (N,), None, a, np.int32(5))
        done.wait()
    cl.enqueue_copy(queue, values, a)
    found[seed] = hashlib.sha256(values.tobytes()).hexdigest()
found = {}
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sorted(found.items()))
"""

_NO_FINISH = """
queue = cl.CommandQueue(context)
a = buffer(1)
for _ in range(300):
    program.spin(queue, (N,), None, a, np.int32(1000))
sys.stdout.flush()
ctypes.CDLL(None).exit(0)
"""

_NEVER = """
queue = cl.CommandQueue(context)
a = buffer(1)
program.spin(queue, (N,), None, a, np.int32(1)).wait()
gate = cl.UserEvent(context)
for _ in range(7):
    program.spin(queue, (N,), None, a, np.int32(1), wait_for=[gate])
sys.stdout.flush()
ctypes.CDLL(None).exit(0)
"""

_DUPLICATED = """
class Plan(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 128), ("skip", ctypes.c_int32), ("n", ctypes.c_int32), ("r", ctypes.c_int32)]
queue = cl.CommandQueue(context)
a, b = buffer(1), buffer(2)
if "libperfsuite_cl_layer" in open("/proc/self/maps").read():
    exec(LAYER)
    assert layer.ps_cl_duplicate(ctypes.byref(Plan(b"add", 3, 10, 2)))
for i in range(6):
    program.add(queue, (N,), None, a, b, np.float32(i))
tell(queue, a, b)
"""

Run = Callable[..., tuple[str, OpenClTrace]]


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> OpenClLayers:
    try:
        return find_opencl_layers(tmp_path_factory.mktemp("layers"))
    except NativeBuildError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of processes that see OpenCL, with the position of the platform to use."""
    found = {**os.environ, **visible_opencl(tmp_path_factory.mktemp("cache"))}
    usable = "'FPGA' not in each.name and each.get_devices()"  # Intel's emulator comes with its runtime
    script = f"import pyopencl as cl; print([bool({usable}) for each in cl.get_platforms()].index(True))"
    done = _child(script, found)
    if done.returncode:
        pytest.skip(f"no OpenCL device: {done.stderr.strip().splitlines()[-1]}")
    return {**found, "PLATFORM": done.stdout.strip(), "PYTHONWARNINGS": "ignore"}


@pytest.fixture
def run(layers: OpenClLayers, environment: Mapping[str, str], tmp_path: Path) -> Run:
    """Run a program without the layer and under it: what it prints must be the same; give that and the log."""

    def run_both(script: str, **extra: str) -> tuple[str, OpenClTrace]:
        bare = _output(script, environment)
        traced = _output(script, {**environment, **layer_environment(layers.tracing, tmp_path), **extra})
        assert traced == bare
        (log,) = tmp_path.glob("opencl-*.log")
        return traced, read_opencl_log(log)

    return run_both


def _output(script: str, environment: Mapping[str, str]) -> str:
    done = _child(f"LAYER = {_LAYER!r}\n{_PRELUDE}\n{script}", environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _child(program: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT_S)


def _types(trace: OpenClTrace) -> Counter[CommandType]:
    return Counter(CommandType(each) for each in trace.commands["type"])


@pytest.mark.long
def test_a_program_sees_and_computes_what_it_would(
    run: Run, layers: OpenClLayers, environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Results, refused times, reference counts and properties of queues are the same, and every command is there.

    Of each launch there are name, range, sizes of buffers and the four times in their order. In the mode that only
    switches profiling on, nothing is recorded.
    """
    seen, trace = run(_PLAIN)
    assert trace.is_complete
    assert _types(trace) == {
        CommandType.KERNEL: 21,
        CommandType.FILL: 1,
        CommandType.COPY: 1,
        CommandType.MAP: 1,
        CommandType.UNMAP: 1,
        CommandType.MARKER: 2,
        CommandType.READ: 2,
    }
    assert [queue.caller_profiles for queue in trace.queues] == [False, True]
    kernels = trace.commands[trace.commands["type"] == CommandType.KERNEL]
    add = kernels[[trace.names[name] == "add" for name in kernels["name"]]]
    assert len(add) == 20
    assert set(add["global"][:, 0]) == {4096}
    assert set(add["local"][:, 0]) == {64}
    assert set(add["n_buffers"]) == {2}
    assert set(add["buffer_bytes"][:, 1]) == {4096 * 4 * 2}
    assert (kernels["queued_ns"] <= kernels["submit_ns"]).all()
    assert (kernels["submit_ns"] <= kernels["start_ns"]).all()
    assert (kernels["start_ns"] < kernels["end_ns"]).all()
    assert (kernels["host_start_ns"] < kernels["host_end_ns"]).all()
    assert trace.clock_points
    (tmp_path / "profile").mkdir()
    under = layer_environment(layers.tracing, tmp_path / "profile", profile_only=True)
    assert _output(_PLAIN, {**environment, **under}) == seen
    assert not list((tmp_path / "profile").iterdir())


def test_what_waits_for_the_program_holds_up_nothing(run: Run) -> None:
    """A command behind a user event on an out-of-order queue is recorded when it is done, as are those that pass it."""
    _, trace = run(_OUT_OF_ORDER)
    assert trace.is_complete
    assert _types(trace)[CommandType.KERNEL] == 51
    assert trace.commands["flags"][0] & CommandFlag.WAITS
    assert trace.commands["end_ns"][0] == trace.commands["end_ns"][:51].max()
    assert trace.queues[0].is_out_of_order


@pytest.mark.long
def test_threads_and_contexts_are_told_apart(run: Run) -> None:
    _, trace = run(_THREADS)
    assert trace.is_complete
    kernels = trace.commands[trace.commands["type"] == CommandType.KERNEL]
    assert Counter(Counter(kernels["thread"].tolist()).values()) == {200: 4}
    assert Counter(Counter(kernels["queue"].tolist()).values()) == {100: 8}
    assert Counter(Counter(queue.context for queue in trace.queues).values()) == {2: 4}


def test_an_exit_without_finish_loses_nothing(run: Run) -> None:
    _, trace = run(_NO_FINISH)
    assert len(trace.commands) == 300
    assert trace.is_complete


def test_duplicates_change_no_result(run: Run) -> None:
    _, trace = run(_DUPLICATED)
    assert trace.is_complete
    assert _types(trace)[CommandType.KERNEL] == 6
    assert len(trace.replayed) == 2 * (1 + 1 + 10)
    assert set(trace.replayed["sequence"]) == {3}


@pytest.mark.long
def test_commands_that_never_finish_are_counted(run: Run) -> None:
    """A program that ends with commands behind a user event leaves their number, and what went before."""
    _, trace = run(_NEVER)
    assert trace.n_unfinished == 7
    assert _types(trace) == {CommandType.KERNEL: 1}
