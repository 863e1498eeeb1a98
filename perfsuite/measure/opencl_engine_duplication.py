"""The engine's OpenCL kernels against kernel duplication, by the layer that follows every launch.

For a worker that is led, whose llama.cpp runs on OpenCL with the layer beneath
(``native/include/perfsuite/cl_layer.h``). One evaluation is run with a few duplicates armed, which says how long the
kernel takes, and one with as many as that asks for; the layer restores every buffer, so the engine computes what it
would have without.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import MeasurementError
from perfsuite.measure.plan import EngineDuplicationPlan, LlamaPlan
from perfsuite.records.duplication import DuplicationRound, KernelDuplication, duplicates_wanted, duplicates_within
from perfsuite.records.events import Phase
from perfsuite.records.opencl_commands import CommandFlag, CommandType, OpenClTrace
from perfsuite.records.opencl_log_file import read_opencl_log

if TYPE_CHECKING:
    from perfsuite.measure.led_worker import LedWorker


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKernel:
    """A kernel at one size of its index space, and which launch of it to duplicate."""

    phase: str
    name: str
    #: Work-items by dimension.
    global_size: tuple[int, ...]
    #: Launches of this name that come before it in an evaluation.
    skip: int
    #: END - START of that launch.
    execution_ns: int

    @property
    def title(self) -> str:
        """Phase, name and size, such as ``kernel/engine/decode/kernel_add/576x1x1``."""
        return f"kernel/engine/{self.phase}/{self.name}/{'x'.join(map(str, self.global_size))}"


def kernels_since(trace: OpenClTrace, since_ns: int, phase: str) -> tuple[EngineKernel, ...]:
    """List the kernels launched from a host time on, each name and size once, by the first launch that has a time."""
    commands = trace.commands
    is_kernel = (commands["type"] == CommandType.KERNEL) & (commands["host_start_ns"] >= since_ns)
    found: dict[tuple[str, tuple[int, ...]], EngineKernel] = {}
    launched: Counter[str] = Counter()
    for row in commands[is_kernel]:
        name = trace.names[int(row["name"])]
        size = tuple(int(each) for each in row["global"][: max(1, int(row["work_dim"]))])
        if (name, size) not in found and not row["flags"] & CommandFlag.NO_PROFILE:
            found[name, size] = EngineKernel(
                phase=phase,
                name=name,
                global_size=size,
                skip=launched[name],
                execution_ns=int(row["end_ns"]) - int(row["start_ns"]),
            )
        launched[name] += 1
    return tuple(found.values())


def longest_kernels(kernels: Sequence[EngineKernel], *, least_ns: int, n_kernels: int) -> tuple[EngineKernel, ...]:
    """Return the `n_kernels` longest of at least `least_ns`."""
    wanted = (each for each in kernels if each.execution_ns >= least_ns)
    return tuple(sorted(wanted, key=lambda each: -each.execution_ns)[:n_kernels])


#: Duplicates of the evaluation that says how long a kernel takes.
_N_PILOT = 10
_FLUSH_LIMIT_NS = 10_000_000_000


def duplicate_engine_kernels(
    worker: LedWorker, plan: EngineDuplicationPlan, file: Callable[[Path], Path]
) -> tuple[KernelDuplication, ...]:
    """Measure the longest kernels of each phase within an evaluation of it; one that cannot be measured says why.

    `file` returns where a file of the worker's machine can be read here.

    Raises `EngineError` where the engine fails; `MeasurementError` where the layer has not written its log, or lost
    commands.
    """
    duplicator = _Duplicator(worker, plan, file)
    chosen = [kernel for phase in plan.phases for kernel in duplicator.chosen(phase)]
    return tuple(map(duplicator.duplicated, chosen))


def phase_plan(plan: LlamaPlan, phase: str) -> LlamaPlan:
    """Return the plan of one evaluation: the prompt, or a single step on an empty cache."""
    n_prompt, n_gen = {Phase.PREFILL.value: (max(1, plan.n_prompt), 0), Phase.DECODE.value: (0, 1)}[phase]
    return replace(plan, n_prompt=n_prompt, n_gen=n_gen, n_depth=0, n_repetitions=1)


@dataclass(frozen=True, slots=True)
class _Duplicator:
    worker: LedWorker
    plan: EngineDuplicationPlan
    file: Callable[[Path], Path]

    def chosen(self, phase: str) -> tuple[EngineKernel, ...]:
        """Run the phase twice, and choose by what the layer has logged of the second time."""
        plan, evaluation = self.plan, phase_plan(self.plan.llama, phase)
        self.worker.warm_up(evaluation)
        since_ns = time.monotonic_ns()
        self.worker.warm_up(evaluation)
        if self.worker.ask(f"flush {_FLUSH_LIMIT_NS}") != "1":
            raise MeasurementError(f"the OpenCL layer has not written its log within {_FLUSH_LIMIT_NS / 1e9:g} s")
        trace = read_opencl_log(self.file(Path(plan.log_dir) / f"opencl-{self.worker.pid}.log"))
        if trace.n_lost:
            raise MeasurementError(f"the OpenCL layer lost {trace.n_lost} commands, so that launches cannot be counted")
        kernels = kernels_since(trace, since_ns, phase)
        return longest_kernels(kernels, least_ns=plan.least_ns, n_kernels=plan.n_kernels)

    def duplicated(self, kernel: EngineKernel) -> KernelDuplication:
        """Measure a kernel, after a pilot that says how long it takes."""
        pilot = self._measured(kernel, n_duplicates=_N_PILOT, n_rounds=1)
        if isinstance(pilot, str):
            return KernelDuplication(name=kernel.title, n_duplicates=0, n_wanted=0, rounds=(), problem=pilot)
        kernel_ns = pilot[0].duplicates_execution_ns / (1 + _N_PILOT)
        n_duplicates = duplicates_within(kernel_ns, self.plan.n_rounds, self.plan.budget_ns)
        found = self._measured(kernel, n_duplicates=n_duplicates, n_rounds=self.plan.n_rounds)
        return KernelDuplication(
            name=kernel.title,
            n_duplicates=n_duplicates,
            n_wanted=duplicates_wanted(kernel_ns),
            rounds=() if isinstance(found, str) else found,
            problem=found if isinstance(found, str) else None,
        )

    def _measured(
        self, kernel: EngineKernel, *, n_duplicates: int, n_rounds: int
    ) -> tuple[DuplicationRound, ...] | str:
        """Run an evaluation with a duplication armed; return its rounds, or why there are none."""
        armed = self.worker.ask(f"duplicate {kernel.skip} {n_duplicates} {n_rounds} {kernel.name}")
        if armed != "1":
            return "the layer does not take the duplication: one is armed already, or it does not record"
        self.worker.warm_up(phase_plan(self.plan.llama, kernel.phase))  # leaves no spans, which nobody asks for
        count, _, rest = self.worker.ask(f"rounds {n_rounds}").partition(" ")
        n_found = int(count)
        if n_found < 0:
            return rest.strip() or "the layer could not duplicate the launch"
        if n_found < n_rounds:
            self.worker.ask("forget")  # the next kernel finds the layer free
            return f"{n_found} of {n_rounds} rounds were measured; was {kernel.name} launched at all?"
        names = [field.name for field in fields(DuplicationRound)]
        numbers = [int(word) for word in rest.split()]
        rows = (numbers[at : at + len(names)] for at in range(0, len(numbers), len(names)))
        return tuple(DuplicationRound(**dict(zip(names, row, strict=True))) for row in rows)
