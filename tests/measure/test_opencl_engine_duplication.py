"""How the engine's kernels are duplicated, with an engine and a layer that only take notes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure import opencl_engine_duplication
from perfsuite.measure.opencl_engine_duplication import (
    EngineKernel,
    duplicate_engine_kernels,
    kernels_since,
    longest_kernels,
    phase_plan,
)
from perfsuite.measure.plan import EngineDuplicationPlan, LlamaPlan
from perfsuite.records.opencl_commands import CommandFlag, Commands, CommandType, OpenClTrace

from .. import synthetic_opencl
from ..synthetic_plans import PLAN as RUN

NAMES = ("kernel_add", "kernel_mul", "kernel_cpy")


def command(number: int, name: str, size: int, duration_ns: int, **changed: Any) -> Commands:
    times = (0, 0, 1000 * number, 1000 * number + duration_ns)
    fields = {"name": NAMES.index(name) + 1 if name else 0, "global": (size, 1, 1), "work_dim": 2, **changed}
    return synthetic_opencl.command(number, 100 * number, times, **fields)


def trace_of(*commands: Commands) -> OpenClTrace:
    return synthetic_opencl.trace(commands, names=NAMES)


def kernel(name: str, size: int, skip: int, duration_ns: int) -> EngineKernel:
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
        ({"least_ns": 91, "n_kernels": 9}, []),
    ],
)
def test_the_longest_are_chosen(wanted: dict[str, Any], expected: list[int]) -> None:
    assert [each.execution_ns for each in longest_kernels(KERNELS, **wanted)] == expected


LLAMA = replace(RUN, n_prompt=32, n_depth=7, n_repetitions=3)
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


@dataclass
class Worker:
    """Notes what it was to run, and measures what is armed then, every launch as long as `kernel_ns`."""

    pid = 7
    kernel_ns: int = 200_000
    error: str = ""
    takes: bool = True
    flushes: bool = True
    n_missing: int = 0
    plans: list[LlamaPlan] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def warm_up(self, plan: LlamaPlan) -> None:
        self.plans.append(plan)

    @property
    def armed(self) -> list[tuple[str, int, int, int]]:
        rows = [step.split(maxsplit=4) for step in self.steps if step.startswith("duplicate ")]
        return [(name, int(skip), int(n), int(n_rounds)) for _, skip, n, n_rounds, name in rows]

    def ask(self, step: str) -> str:
        self.steps.append(step)
        if step.startswith("rounds "):
            return self._rounds(int(step.split()[1]))
        return {"duplicate": str(int(self.takes)), "flush": str(int(self.flushes)), "forget": "1"}[step.split()[0]]

    def _rounds(self, capacity: int) -> str:
        if self.error:
            return f"-1 {self.error}"
        _, _, n, n_rounds = self.armed[-1]
        found = min(capacity, n_rounds) - self.n_missing
        k = self.kernel_ns
        row = (10**6, 10**6 + n * (k + 2000), k, (1 + n) * k, n * (k + 1000))
        return " ".join(map(str, (found, *(row * found))))


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[OpenClTrace]:
    """Replace the layer's log by one with a long, a longer and a short kernel."""
    launches = (("kernel_add", 8, 150), ("kernel_mul", 8, 150), ("kernel_mul", 64, 900), ("kernel_cpy", 8, 99))
    found = [trace_of(*(command(number, *launch) for number, launch in enumerate(launches, 1)))]
    monkeypatch.setattr(opencl_engine_duplication, "read_opencl_log", lambda path: found[-1])
    monkeypatch.setattr("perfsuite.measure.opencl_engine_duplication.time.monotonic_ns", lambda: 0)
    return found


def duplicated(worker: Worker, plan: EngineDuplicationPlan = PLAN) -> Any:
    stand_in: Any = worker
    return duplicate_engine_kernels(stand_in, plan, lambda path: path)


@pytest.mark.usefixtures("trace")
def test_each_phase_duplicates_its_longest_kernels() -> None:
    """A pilot says how long the kernel takes, then it is duplicated as often as that asks for and the budget allows."""
    worker = Worker()
    found = duplicated(worker)
    assert [each.name for each in found] == [f"kernel/engine/{phase}/kernel_mul/64x1" for phase in PLAN.phases]
    assert worker.armed == [("kernel_mul", 1, 10, 1), ("kernel_mul", 1, 1000, 2)] * 2
    for each in found:
        assert (each.n_duplicates, each.n_wanted, len(each.rounds), each.problem) == (1000, 1000, 2, None)
        assert (each.ground_truth_ns, each.execution_ns, each.occupied_ns) == (202_000, 200_000, 201_000)
    (fewer,) = duplicated(Worker(), replace(PLAN, phases=("decode",), budget_ns=8 * 10**7))
    assert (fewer.n_duplicates, fewer.n_wanted) == (200, 1000)


@pytest.mark.usefixtures("trace")
def test_each_evaluation_is_one_of_its_phase() -> None:
    """A token of a prompt at least, or a step, on an empty cache; twice to choose, then for each duplication."""
    worker = Worker()
    duplicated(worker)
    prompt, step = [(32, 0, 0)] * 2, [(0, 1, 0)] * 2
    assert [(each.n_prompt, each.n_gen, each.n_depth) for each in worker.plans] == prompt + step + prompt + step
    assert phase_plan(replace(LLAMA, n_prompt=0), "prefill").n_prompt == 1


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize(
    ("worker", "problem"),
    [
        (Worker(error=" "), "the layer could not duplicate the launch"),
        (Worker(n_missing=1), "0 of 1 rounds were measured; was kernel_mul launched at all?"),
        (Worker(takes=False), "the layer does not take the duplication: one is armed already, or it does not record"),
    ],
)
def test_what_the_layer_refuses_is_a_problem_of_its_kernel(worker: Worker, problem: str) -> None:
    found = duplicated(worker)
    assert [(each.problem, each.rounds, each.ground_truth_ns) for each in found] == [(problem, (), None)] * 2


def test_a_log_that_does_not_come_is_an_error(trace: list[OpenClTrace]) -> None:
    with pytest.raises(MeasurementError, match="has not written its log within 10 s"):
        duplicated(Worker(flushes=False))
    trace.append(replace(trace[0], n_lost=4))
    with pytest.raises(MeasurementError, match="lost 4 commands"):
        duplicated(Worker())
