"""What a worker is started with, and what is made of how it ended: its record, or the reason why there is none."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfsuite.errors import EngineError, MeasurementError
from perfsuite.measure.engine import OPENCL_BACKEND, Engine, find_engine
from perfsuite.measure.plan import (
    WORKER_LIMIT_S,
    LlamaPlan,
    OperatorsPlan,
    Plan,
    ShapesPlan,
    TensorsPlan,
    limit_text,
    load_record,
    task_of,
)

#: Most that is kept of what a worker prints: its last words.
KEPT_BYTES = 1 << 16

#: Longest to wait for what a killed worker has left behind.
_REAP_LIMIT_S = 10.0

#: Variables with which a user says where OpenMP's threads run.
_PINNING_NAMES = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}

#: The variable by which a worker knows the number of the process that started it, so that it ends with that.
PARENT_NAME = "PERFSUITE_PARENT"

#: What a worker that takes turns prints when it is ready for the next.
READY_MARK = "perfsuite-worker-ready"

#: What a worker prints before its one-line reason, when it fails for a reason that it knows.
FAILURE_MARK = "perfsuite-worker-failed: "


def planned_engine(plan: LlamaPlan | OperatorsPlan | ShapesPlan | TensorsPlan) -> Engine:
    """Find the llama.cpp that a plan was made for; `EngineError` where another build is there by now."""
    engine = find_engine(Path(plan.library_dir))
    if engine.build_id != plan.engine_build_id:
        raise EngineError(
            f"{plan.library_dir}: holds build {engine.build_id}, the plan was made for {plan.engine_build_id}; "
            "run again"
        )
    return engine


def run_worker(
    plan: Plan, *, extra_environment: Mapping[str, str] | None = None, limit_s: float = WORKER_LIMIT_S
) -> dict[str, Any]:
    """Run one plan in a fresh process of this machine, which is not taken for it; as `Board.run`."""
    from perfsuite.measure.board.local_board import LocalBoard  # which reads records by this module
    from perfsuite.records.own_files import user_cache

    cache_dir: str | None = getattr(getattr(plan, "llama", plan), "cache_dir", None)
    with contextlib.closing(LocalBoard(cache_dir=Path(cache_dir) if cache_dir else user_cache())) as board:
        return board.run(plan, extra_environment=extra_environment, limit_s=limit_s)


def publishing_processors(llama: LlamaPlan, usable: frozenset[int]) -> frozenset[int]:
    """Return where records of a run are published; nothing leaves it to the scheduler.

    The driver's thread is bound to the first processor where threads are bound at all: publishing keeps off it.
    """
    is_bound = llama.binds_threads and llama.n_threads == len(usable) > 1
    return usable - {min(usable)} if is_bound else frozenset()


def pinning(plan: Plan, usable: Sequence[int], variables: Collection[str]) -> dict[str, str]:
    """Give each of the engine's threads a processor of its own, where it has as many threads as there are processors.

    Two threads that spin on one processor while another is idle look busy to the scheduler, and it may leave them there
    for seconds. With fewer threads than processors it chooses better than we: which processors are the fast ones.
    What the environment itself says about threads, by one of its `variables`, stays.
    """
    llama = getattr(plan, "llama", plan)
    if not isinstance(llama, LlamaPlan | OperatorsPlan | ShapesPlan):
        return {}
    if not llama.binds_threads or llama.n_threads != len(usable):
        return {}
    if _PINNING_NAMES.intersection(variables):
        return {}
    return {"OMP_PROC_BIND": "true", "OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in usable)}


#: What gives each BLAS one thread.
ONE_BLAS_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")


def record_payload(plan: Plan, record: bytes | None, output: str) -> dict[str, Any]:
    """Return the payload of a worker's record, or raise with its reason from its output where it left none."""
    if record is None:
        raise MeasurementError(_reason(output, task_of(plan)))
    return load_record(record, task_of(plan))


def awaited_output(process: subprocess.Popen[str], limit_s: float, task: str) -> str:
    """Wait for a worker, which leads a process group of its own, and return the last that it printed.

    Raises `MeasurementError` where it was killed or ran past its limit; nothing of it is left in any case.
    """
    started = time.monotonic()
    try:
        output = _last_output(process, started + limit_s)
        process.wait(max(0.0, started + limit_s - time.monotonic()))
    except (subprocess.TimeoutExpired, TimeoutError):
        raise still_running(task, time.monotonic() - started, limit_s) from None
    finally:
        kill_worker(process)  # and what an engine has started and left
    refuse_killed(process.returncode, output, task)
    return output


def _last_output(process: subprocess.Popen[str], deadline_s: float) -> str:
    """Read a worker's output to its end, and return the last `KEPT_BYTES` of it; `TimeoutError` past the deadline."""
    assert process.stdout is not None
    descriptor, kept = process.stdout.fileno(), b""
    while True:
        await_descriptor(descriptor, selectors.EVENT_READ, deadline_s)
        chunk = os.read(descriptor, KEPT_BYTES)
        if not chunk:
            return kept.decode(errors="replace")
        kept = (kept + chunk)[-KEPT_BYTES:]


def await_descriptor(descriptor: int, event: int, deadline_s: float) -> None:
    """Wait until a pipe can be read or written; `TimeoutError` past a deadline of ``time.monotonic``."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, event)
        if not selector.select(max(0.0, deadline_s - time.monotonic())):
            raise TimeoutError


def still_running(task: str, after_s: float, limit_s: float) -> MeasurementError:
    """Return the error for a worker that ran past its limit."""
    return MeasurementError(
        f"the worker for '{task}' was still running after {after_s:.0f} s and was stopped ({limit_text(limit_s)}); "
        "use a smaller model or scenario, or another build if this one hangs"
    )


def refuse_killed(status: int | None, output: str, task: str) -> None:
    """Raise a `MeasurementError` where an ended worker did not end by itself: its status is a signal's, negated."""
    if status is not None and status < 0:
        name = signal_name(-status)
        remedy = _REMEDIES.get(-status, _CRASHED)
        raise MeasurementError(f"the worker for '{task}' was killed by {name}: {last_line(output)}; {remedy}")


#: What to do about a worker that a signal has ended.
_CRASHED = "the engine or a driver crashed: measure another build, or fix this one"
_REMEDIES: dict[int, str] = {signal.SIGKILL: "if memory ran out, use a smaller model or context"}


def kill_worker(process: subprocess.Popen[str]) -> None:
    """Stop a worker and its children, and reap it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_LIMIT_S)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def signal_name(number: int) -> str:
    """Return a signal's name, or its number where it has none."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


#: How ggml says that a kernel does not compile, after which it ends the process; and how much of the rest is shown.
_NOT_COMPILED, _MOST_SHOWN = "ggml_opencl: kernel compile error", 300


def _reason(output: str, task: str) -> str:
    for line in output.splitlines():
        if line.startswith(FAILURE_MARK):
            return line[len(FAILURE_MARK) :]
        if _NOT_COMPILED in line:
            return (
                f"{OPENCL_BACKEND}: a kernel of llama.cpp's OpenCL backend does not compile on the device "
                f"({line.strip()[:_MOST_SHOWN]}); update the device's OpenCL driver, choose another platform by "
                "--opencl-platform (of pytest --perf-opencl-platform), or measure another llama.cpp"
            )
    return f"the worker for '{task}' wrote no record: {last_line(output)}"


#: How ggml says which call of a driver failed, after which it ends the process: the driver may print more by then.
_CALL_FAILED = re.compile(r"^ggml_\w+: .* error -?\d+ at ")


def last_line(output: str) -> str:
    """Return the last that a process printed, or what it says of a driver's call that failed, for a message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    failed = [line[:_MOST_SHOWN] for line in lines if _CALL_FAILED.search(line)]
    return (failed or [line[-_MOST_SHOWN:] for line in lines[-1:]] or ["it printed nothing"])[0]
