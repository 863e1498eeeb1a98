"""The eBPF recorder of one process: starts the helper, switches what it records, and ends it.

The helper writes its log into the file by itself; this process hands it the open file and nothing of what is recorded
passes through here.
"""

from __future__ import annotations

import os
import random
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol

from perfsuite.errors import MeasurementError
from perfsuite.measure.counters import find_counters, usual_counters
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.measure.tensor_layout import refuse_other_layout
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.trace_levels import TraceLevel

#: Loading the programs takes a second or two on a slow board.
READY_LIMIT_S = 60.0
#: Taking probes away and setting others.
SWITCH_LIMIT_S = 30.0
#: Writing what is left, on a slow disk.
FINISH_LIMIT_S = 60.0

BUFFERS = ("ring", "perf")

#: The operator whose third source are the ids of experts.
_EXPERT_OP = "MUL_MAT_ID"
#: How the helper says that all is attached, and that levels are switched.
_READY, _ANSWER = b"ready\n", b"\nlevels "
#: What cannot be recorded without knowing where a tensor's fields lie.
_NEEDS_LAYOUT = TraceLevel.STRUCTURE | TraceLevel.EXPERTS


def start_ebpf(
    pid: int, ebpf: EbpfPlan, layout: TensorLayout | None, *, buffer_bytes: int | None = None
) -> EbpfRecording:
    """Begin to record a process that has loaded llama.cpp; everything asked for is attached when this returns.

    `layout` may be None where neither structure nor experts are recorded, at any time. Without names of counters those
    that are usual on this kind of machine are asked for, and those that it lacks are noted.

    Raises `MeasurementError` where the helper cannot be started, cannot attach, or is not ready in time, in its own
    words; `EngineError` where the process maps another build than the layout is of.
    """
    if layout is not None:
        refuse_other_layout(layout, pid)
    options = helper_options(pid, ebpf, layout, buffer_bytes=buffer_bytes)
    return ready_recording(HelperPipes(_start([ebpf.helper, *options], Path(ebpf.log_path))))


def ready_recording(helper: Helper) -> EbpfRecording:
    """Wait until a helper that was started has everything attached; raises as `start_ebpf` does."""
    recording = EbpfRecording(helper)
    try:
        recording.wait_until_ready(READY_LIMIT_S)
    except BaseException:
        recording.kill()
        raise
    return recording


class Helper(Protocol):
    """A helper program that runs, here or on a board."""

    @property
    def pid(self) -> int:
        """Its process, where it runs."""

    @property
    def said(self) -> bytes:
        """Return all that it has said so far."""

    def tell(self, line: str) -> None:
        """Send it a line; OSError where it reads none any more."""

    def listen(self, limit_s: float) -> bool:
        """Take more of what it says; False once it says nothing any more, `TimeoutError` where it is silent so long."""

    def has_ended(self) -> bool:
        """Whether it has ended by itself."""

    def end(self, limit_s: float) -> int:
        """Close its input, and return what it ends with; `TimeoutError` where it had to be killed."""

    def kill(self) -> None:
        """End it at once."""


class HelperPipes:
    """A helper of this machine, by its process with pipes for input and errors."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._said = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> bytes:
        return self._said

    def tell(self, line: str) -> None:
        if self._process.stdin is None:
            raise BrokenPipeError
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def listen(self, limit_s: float) -> bool:
        errors = self._process.stderr
        assert errors is not None
        with selectors.DefaultSelector() as selector:
            selector.register(errors, selectors.EVENT_READ)
            if not selector.select(max(0.0, limit_s)):
                raise TimeoutError
        part = os.read(errors.fileno(), 4096)
        self._said += part
        return bool(part)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self, limit_s: float) -> int:
        if self._process.stdin is not None:
            with suppress(OSError):  # it has ended by itself
                self._process.stdin.close()
            self._process.stdin = None
        try:
            self._said += self._process.communicate(timeout=limit_s)[1] or b""
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise TimeoutError from None
        return self._process.returncode

    def kill(self) -> None:
        self._process.kill()


class EbpfRecording:
    """A helper at work; a context manager that ends it."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper
        #: What it has ended with, once that was asked for; None where it had to be killed.
        self._status: int | None = None
        self._is_collected = False

    def __enter__(self) -> EbpfRecording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Finish, unless that was done; where something else went wrong, that is what is raised."""
        if kind is not None:
            self.kill()
        elif not self._is_collected:
            self.finish()

    @property
    def helper_pid(self) -> int:
        return self._helper.pid

    def notes(self) -> tuple[str, ...]:
        """Return what it has noted so far: counters that are left out, commands that it could not follow."""
        lines = self._helper.said.decode(errors="replace").splitlines()
        return tuple(line.removeprefix("note: ") for line in lines if line.startswith("note: "))

    def has_ended(self) -> bool:
        """Return whether it has ended by itself, such as with the process that it records."""
        return self._helper.has_ended()

    def switch(self, levels: TraceLevel) -> None:
        """Switch to other levels; they hold when this returns, unless a note says why not. The log has the time.

        Raises `MeasurementError` where the helper has ended, or does not answer in time.
        """
        n_answers = self._helper.said.count(_ANSWER)
        try:
            self._helper.tell(f"levels {int(levels)}")
        except OSError:
            self._collect(FINISH_LIMIT_S)
            raise MeasurementError(self._reason("has ended and cannot switch levels")) from None
        self._listen(lambda said: said.count(_ANSWER) > n_answers, SWITCH_LIMIT_S)

    def finish(self) -> tuple[str, ...]:
        """Have it write what is left and end, if it has not ended already; return what it left out, or could not do.

        Raises `MeasurementError` where it broke off, or does not end in time; what the log has up to then stays.
        """
        self._collect(FINISH_LIMIT_S)
        if self._status != 0:
            raise MeasurementError(self._reason(f"ended with {self._status}"))
        return self.notes()

    def kill(self) -> None:
        self._helper.kill()
        self._collect(FINISH_LIMIT_S)

    def wait_until_ready(self, limit_s: float) -> None:
        """Wait for its word that everything is attached; `MeasurementError` with its own where it failed."""
        self._listen(lambda said: _READY in said, limit_s)

    def _listen(self, has_come: Callable[[bytes], bool], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not has_come(self._helper.said):
            try:
                goes_on = self._helper.listen(deadline - time.monotonic())
            except TimeoutError:
                raise MeasurementError(f"eBPF recorder: no answer after {limit_s:g} s") from None
            if not goes_on:
                self._collect(FINISH_LIMIT_S)
                raise MeasurementError(self._reason("has ended"))

    def _collect(self, limit_s: float) -> None:
        if self._is_collected:
            return
        self._is_collected = True
        try:
            self._status = self._helper.end(limit_s)
        except TimeoutError:
            raise MeasurementError(f"eBPF recorder: still running after {limit_s:g} s") from None

    def _reason(self, otherwise: str) -> str:
        lines = self._helper.said.decode(errors="replace").splitlines()
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return f"eBPF recorder: {errors[0] if errors else otherwise}"


def _start(command: Sequence[str], log_path: Path) -> subprocess.Popen[bytes]:
    """Start it in a session of its own: a terminal's Ctrl-C is for the program, which may go on after it."""
    pipe = subprocess.PIPE
    try:
        with log_path.open("wb") as log:
            return subprocess.Popen(command, stdin=pipe, stdout=log, stderr=pipe, start_new_session=True)
    except OSError as error:
        where = error.filename or command[0]
        raise MeasurementError(f"eBPF recorder: {where}: cannot be started ({error.strerror})") from None


def helper_options(
    pid: int,
    ebpf: EbpfPlan,
    layout: TensorLayout | None,
    *,
    buffer_bytes: int | None = None,
    machine: str | None = None,
) -> list[str]:
    """Return what the helper is called with, on this kind of machine unless told; raises as `start_ebpf` does."""
    if ebpf.buffer not in BUFFERS:
        raise MeasurementError(f"buffer {ebpf.buffer!r}: one of {', '.join(BUFFERS)} is expected")
    if layout is None and ebpf.levels & _NEEDS_LAYOUT:
        raise MeasurementError("structure and experts are recorded with a layout of the engine's tensors only")
    options = ["--pid", str(pid), "--levels", str(ebpf.levels), "--buffer", ebpf.buffer]
    options += ["--buffer-bytes", str(buffer_bytes)] if buffer_bytes is not None else []
    if ebpf.floor_tokens_per_s:
        options += ["--floor-milli-tokens-per-s", str(round(1000 * ebpf.floor_tokens_per_s))]
    options += ["--statistics"] if ebpf.statistics else []
    names = ebpf.counters or (usual_counters(machine) if ebpf.levels & TraceLevel.COUNTERS else ())
    for counter in find_counters(names, machine):
        options += ["--counter", f"{counter.name}:{counter.type}:{counter.config}"]
    return options + (_layout_options(layout) if layout is not None else [])


def _layout_options(layout: TensorLayout) -> list[str]:
    numbers = {
        "--tensor-bytes": layout.tensor_bytes,
        "--ne-at": layout.ne_at,
        "--nb-at": layout.nb_at,
        "--op-at": layout.op_at,
        "--src-at": layout.src_at,
        "--n-src": layout.n_src,
        "--data-at": layout.data_at,
    }
    if _EXPERT_OP in layout.ops:
        numbers["--expert-op"] = layout.ops.index(_EXPERT_OP)
    return [text for name, number in numbers.items() for text in (name, str(number))]


#: What is compared.
COMPARED = (Phase.PREFILL, Phase.DECODE)


def drawn_sides(n_pairs: int, order: random.Random) -> tuple[bool, ...]:
    """Return which of `2 * n_pairs` turns are traced: two by two, in an order that is drawn."""
    drawn = (order.random() < 0.5 for _ in range(n_pairs))
    return tuple(side for first in drawn for side in (first, not first))


def paired_sums(record: EngineRecord, sides: tuple[bool, ...]) -> dict[Phase, tuple[list[int], list[int]]]:
    """Return, by phase, what each pair's plain and traced turn took, in ns; a turn is one repetition of the record.

    A decode is the sum of its steps, so that what hits only a few of them counts as well.
    """
    sums = {phase: [0] * len(sides) for phase in COMPARED}
    for span in record.spans:
        if span.phase in sums and span.repetition < len(sides):
            sums[span.phase][span.repetition] += span.duration_ns

    def of_side(turns: list[int], traced: bool) -> list[int]:
        return [ns for ns, is_traced in zip(turns, sides, strict=True) if is_traced is traced]

    return {phase: (of_side(turns, False), of_side(turns, True)) for phase, turns in sums.items()}


def required_ebpf(plan: LlamaPlan) -> EbpfPlan:
    """Return what a plan says of the eBPF recorder; `MeasurementError` where it says nothing."""
    if plan.ebpf is None:
        raise MeasurementError("the plan of an eBPF recording names no helper; run again")
    return plan.ebpf
