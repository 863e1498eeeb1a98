"""How the engine's kernels are duplicated, with an engine and a layer that only take notes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import EngineError, MeasurementError
from perfsuite.measure import opencl_engine_duplication
from perfsuite.measure.opencl_engine_duplication import (
    EngineKernel,
    duplicate_engine_kernels,
    kernels_since,
    longest_kernels,
    phase_plan,
)
from perfsuite.measure.plan import EngineDuplicationPlan, LlamaPlan
from perfsuite.records.opencl_commands import COMMAND_DTYPE, CommandFlag, CommandType, OpenClTrace

NAMES = ("", "kernel_add", "kernel_mul", "kernel_cpy")


def command(number: int, name: str, size: int, duration_ns: int, **changed: Any) -> np.void:
    """Return a launch at host time 100 a number."""
    row = np.zeros(1, COMMAND_DTYPE)[0]
    row["global"] = (size, 1, 1)
    for column, value in {
        "sequence": number,
        "host_start_ns": 100 * number,
        "name": NAMES.index(name),
        "type": CommandType.KERNEL,
        "work_dim": 2,
        "start_ns": 1000 * number,
        "end_ns": 1000 * number + duration_ns,
        **changed,
    }.items():
        row[column] = value
    return row


def trace_of(*commands: np.void) -> OpenClTrace:
    """Return the trace of a process."""
    return OpenClTrace(
        pid=1,
        commands=np.array(list(commands), COMMAND_DTYPE),
        replayed=np.empty(0, COMMAND_DTYPE),
        names=NAMES,
        devices=(),
        queues=(),
        clock_points=(),
        n_lost=0,
        n_unfinished=0,
    )


def kernel(name: str, size: int, skip: int, duration_ns: int) -> EngineKernel:
    """Return a kernel of a decode."""
    return EngineKernel(phase="decode", name=name, global_size=(size, 1), skip=skip, execution_ns=duration_ns)


def test_each_kernel_and_size_is_there_once() -> None:
    """The first launch of a name and size counts that has times, after as many of that name as went before it.

    Earlier evaluations and copies neither count nor are skipped.
    """
    trace = trace_of(
        command(1, "kernel_add", 8, 500),
        command(2, "kernel_mul", 8, 600),
        command(3, "", 8, 500, type=CommandType.COPY),
        command(4, "kernel_add", 8, 900),
        command(5, "kernel_add", 64, 700, flags=CommandFlag.NO_PROFILE),
        command(6, "kernel_add", 64, 800),
    )
    expected = (kernel("kernel_add", 8, 0, 500), kernel("kernel_mul", 8, 0, 600), kernel("kernel_add", 64, 3, 800))
    assert kernels_since(trace, 0, "decode") == expected
    later = (kernel("kernel_mul", 8, 0, 600), kernel("kernel_add", 8, 0, 900), kernel("kernel_add", 64, 2, 800))
    assert kernels_since(trace, 101, "decode") == later
    assert expected[2].title == "kernel/engine/decode/kernel_add/64x1"


KERNELS = (kernel("a", 1, 0, 50), kernel("b", 1, 0, 90), kernel("a", 2, 1, 70), kernel("c", 1, 0, 30))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"least_ns": 0, "n_kernels": 2}, [90, 70]),
        ({"least_ns": 50, "n_kernels": 9}, [90, 70, 50]),
        ({"least_ns": 0, "n_kernels": 9, "names": ("a", "c")}, [70, 50, 30]),
        ({"least_ns": 91, "n_kernels": 9}, []),
    ],
)
def test_the_longest_are_chosen(wanted: dict[str, Any], expected: list[int]) -> None:
    """At most so many, none shorter than the least, of the names given or of all."""
    assert [each.execution_ns for each in longest_kernels(KERNELS, **wanted)] == expected


LLAMA = LlamaPlan(
    gguf_path="/model.gguf",
    library_dir="/lib",
    engine_build_id="0123456789abcdef",
    cache_dir="/cache",
    n_threads=2,
    n_prompt=32,
    n_gen=24,
    n_depth=7,
    n_repetitions=3,
)
PLAN = EngineDuplicationPlan(
    llama=LLAMA,
    layer_library="/layer.so",
    log_dir="/logs",
    phases=("prefill", "decode"),
    n_kernels=1,
    least_ns=100,
    n_rounds=2,
    budget_ns=10**9,
)


class Function:
    """A function of a library: it takes declarations, and calls what stands in for it."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.argtypes: Any = None
        self.restype: Any = None
        self._body = body

    def __call__(self, *arguments: Any) -> Any:
        """Call the stand-in."""
        return self._body(*arguments)


@dataclass
class Layer:
    """Measures what is armed once the engine has run, every launch as long as `kernel_ns`."""

    kernel_ns: int = 200_000
    error: str = ""
    takes: bool = True
    flushes: bool = True
    armed: list[tuple[str, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Export the functions under their names."""
        self.ps_cl_duplicate = Function(self._duplicate)
        self.ps_cl_duplication_rounds = Function(self._rounds)
        self.ps_cl_flush = Function(lambda _: self.flushes)

    def _duplicate(self, plan: Any) -> bool:
        wanted = plan._obj
        self.armed.append((wanted.name.decode(), wanted.skip, wanted.n_duplicates, wanted.n_rounds))
        return self.takes

    def _rounds(self, rounds: Any, capacity: int, error: Any, error_bytes: int) -> int:
        if self.error:
            error.value = self.error.encode()[: error_bytes - 1]
            return -1
        _, _, n, n_rounds = self.armed[-1]
        for number in range(min(capacity, n_rounds)):
            rounds[number].base_ns = 10**6
            rounds[number].duplicated_ns = 10**6 + n * (self.kernel_ns + 2000)
            rounds[number].base_execution_ns = self.kernel_ns
            rounds[number].duplicates_execution_ns = (1 + n) * self.kernel_ns
            rounds[number].duplicates_occupied_ns = n * (self.kernel_ns + 1000)
        return n_rounds


@dataclass
class Engine:
    """Notes what it was to run."""

    plans: list[LlamaPlan] = field(default_factory=list)

    def warm_up(self, plan: LlamaPlan) -> None:
        """Run it and leave no trace."""
        self.plans.append(plan)


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[OpenClTrace]:
    """Replace the layer's log by one with a long, a longer and a short kernel."""
    found = [
        trace_of(
            command(1, "kernel_add", 8, 150),
            command(2, "kernel_mul", 8, 150),
            command(3, "kernel_mul", 64, 900),
            command(4, "kernel_cpy", 8, 99),
        )
    ]
    monkeypatch.setattr(opencl_engine_duplication, "read_opencl_log", lambda path: found[-1])
    monkeypatch.setattr("perfsuite.measure.opencl_engine_duplication.time.monotonic_ns", lambda: 0)
    return found


def duplicated(layer: Layer, engine: Engine | None = None, plan: EngineDuplicationPlan = PLAN) -> Any:
    """Run the duplication."""
    stand_ins: tuple[Any, Any] = (engine or Engine(), layer)
    return duplicate_engine_kernels(*stand_ins, plan)


@pytest.mark.usefixtures("trace")
def test_each_phase_duplicates_its_longest_kernels() -> None:
    """A pilot says how long the kernel takes, then it is duplicated as often as that asks for and the budget allows."""
    layer = Layer()
    found = duplicated(layer)
    assert [each.name for each in found] == [f"kernel/engine/{phase}/kernel_mul/64x1" for phase in PLAN.phases]
    assert layer.armed == [("kernel_mul", 1, 10, 1), ("kernel_mul", 1, 1000, 2)] * 2
    assert [(each.n_duplicates, each.n_wanted, len(each.rounds), each.problem) for each in found] == [
        (1000, 1000, 2, None)
    ] * 2
    assert [(each.ground_truth_ns, each.execution_ns, each.occupied_ns) for each in found] == [
        (202_000, 200_000, 201_000)
    ] * 2
    (fewer,) = duplicated(Layer(), plan=replace(PLAN, phases=("decode",), budget_ns=8 * 10**7))
    assert (fewer.n_duplicates, fewer.n_wanted) == (200, 1000)


@pytest.mark.usefixtures("trace")
def test_each_evaluation_is_one_of_its_phase() -> None:
    """A token of a prompt at least, or a step, on an empty cache; twice to choose, then for each duplication."""
    engine = Engine()
    duplicated(Layer(), engine)
    prompt, step = [(32, 0, 0)] * 2, [(0, 1, 0)] * 2
    assert [(each.n_prompt, each.n_gen, each.n_depth) for each in engine.plans] == prompt + step + prompt + step
    assert phase_plan(replace(LLAMA, n_prompt=0), "prefill").n_prompt == 1
    with pytest.raises(EngineError, match="duplicated in prefill or decode, not in 'sampling'"):
        phase_plan(LLAMA, "sampling")


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize(
    ("layer", "problem"),
    [
        (Layer(error="an image cannot be copied"), "an image cannot be copied"),
        (Layer(takes=False), "the layer does not take the duplication: one is armed already, or it does not record"),
    ],
)
def test_what_the_layer_refuses_is_a_problem_of_its_kernel(layer: Layer, problem: str) -> None:
    """The others are measured all the same."""
    found = duplicated(layer)
    assert [(each.problem, each.rounds, each.ground_truth_ns) for each in found] == [(problem, (), None)] * 2


def test_a_log_that_does_not_come_is_an_error(trace: list[OpenClTrace]) -> None:
    """Nothing can be chosen before the layer has written, nor where it lost commands."""
    with pytest.raises(MeasurementError, match="has not written its log within 10 s"):
        duplicated(Layer(flushes=False))
    trace.append(replace(trace[0], n_lost=4))
    with pytest.raises(MeasurementError, match="lost 4 commands"):
        duplicated(Layer())


def test_the_structs_are_the_layers() -> None:
    """Plan and round are as long as in cl_layer.h."""
    structs = (opencl_engine_duplication._Duplication, opencl_engine_duplication._Round)
    assert [ctypes.sizeof(each) for each in structs] == [140, 40]
