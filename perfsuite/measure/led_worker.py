"""A replicate of llama.cpp that is led step by step: what follows or changes its process is started between steps.

The eBPF recorder is attached once the model is loaded, and switched from run to run; the OpenCL layer gets which
launch to duplicate. Both are done from here, with the process waiting, so that the worker itself is the same program
whoever looks on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from perfsuite.errors import MeasurementError
from perfsuite.measure.ebpf import drawn_sides, paired_sums, required_ebpf
from perfsuite.measure.launch import READY_MARK
from perfsuite.measure.plan import EbpfOverheadPlan, EngineDuplicationPlan, LlamaPlan, Plan, StepsPlan, limit_text
from perfsuite.records.events import EngineRecord
from perfsuite.records.trace_levels import TraceLevel

if TYPE_CHECKING:
    from perfsuite.measure.board.runs import RunPlace
    from perfsuite.measure.board.told_worker import ToldWorker


class LedWorker:
    """A worker that takes one step after the other; a context manager that starts and ends it."""

    def __init__(self, worker: AbstractContextManager[ToldWorker], *, limit_s: float) -> None:
        """Every step raises a `MeasurementError` once `limit_s` has passed, or the worker has ended."""
        self._limit_s, self._deadline_s = limit_s, time.monotonic() + limit_s
        self._opening = worker

    def __enter__(self) -> LedWorker:
        """Wait until the model is loaded."""
        with ExitStack() as stack:
            self._worker = stack.enter_context(self._opening)
            self._answer("its model was loaded")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it, whatever it does."""
        self._stack.__exit__(kind, error, at)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._worker.pid

    def ask(self, step: str) -> str:
        """Have it take a step, and return its answer (``native/src/worker/steps.h``)."""
        try:
            self._worker.tell(step, self._deadline_s)
        except TimeoutError:
            raise self._late() from None
        return self._answer(f"the step '{step}' was taken")

    def warm_up(self, plan: LlamaPlan) -> None:
        """Run a short version of a workload, which leaves no trace."""
        longest = max(plan.prompt_lengths, default=plan.n_prompt)
        self.ask(f"warm_up {longest} {min(plan.n_gen, 1)} {plan.n_depth}")

    def run(self, plan: LlamaPlan) -> None:
        """Run a workload with each of its prompts, and keep what it recorded."""
        for n_prompt in plan.prompt_lengths or (plan.n_prompt,):
            self.ask(f"run {n_prompt} {plan.n_gen} {plan.n_depth} {plan.n_repetitions}")

    def payload(self) -> dict[str, Any]:
        """Let it end, and return what it has measured."""
        self._worker.end_input()
        try:
            self._worker.answer(None, lambda: self._deadline_s)
        except TimeoutError:
            raise self._late() from None
        return self._worker.payload()

    def _answer(self, what: str) -> str:
        try:
            line = self._worker.answer(READY_MARK, lambda: self._deadline_s)
        except TimeoutError:
            raise self._late() from None
        if line is None:
            raise self._worker.early_end(what)
        return line.removeprefix(READY_MARK).strip()

    def _late(self) -> MeasurementError:
        return MeasurementError(
            f"the worker for '{self._worker.task}' did not finish in time and was stopped "
            f"({limit_text(self._limit_s)}); use a smaller model or scenario, or another build if this one hangs"
        )


#: How a plan is led: by the plan, the place, and the limit.
Lead: TypeAlias = Callable[[Any, "RunPlace", float], dict[str, Any]]


def lead_of(plan: Plan) -> Lead | None:
    """Return how a plan is led; None for one that a worker runs by itself."""
    if isinstance(plan, LlamaPlan) and plan.ebpf is not None:
        return _traced_by_ebpf
    return _LEADS.get(type(plan))


def _traced_by_ebpf(plan: LlamaPlan, place: RunPlace, limit_s: float) -> dict[str, Any]:
    """Run a replicate which the eBPF recorder follows from the end of the warm-up on."""
    with LedWorker(place.worker(StepsPlan(llama=replace(plan, ebpf=None))), limit_s=limit_s) as worker:
        worker.warm_up(plan)
        with place.board.recording(worker.pid, plan) as recording:
            worker.run(plan)
            notes = recording.finish()
        return {**worker.payload(), "ebpf_notes": list(notes)}


def _ebpf_overhead(plan: EbpfOverheadPlan, place: RunPlace, limit_s: float) -> dict[str, Any]:
    """Run the same work by turns with probes attached and without, two by two in an order that is drawn.

    A process, its buffers and its threads are the same on both sides then, and so is the helper program, which has
    nothing to do while nothing is attached. A turn begins with one token that is not counted: it meets the breakpoints
    that have just been set.
    """
    llama, ebpf = plan.llama, required_ebpf(plan.llama)
    sides = drawn_sides(plan.n_pairs, random.Random())
    with LedWorker(place.worker(StepsPlan(llama=replace(llama, ebpf=None))), limit_s=limit_s) as worker:
        worker.warm_up(llama)
        with place.board.recording(worker.pid, llama) as recording:
            for is_traced in sides:
                recording.switch(TraceLevel(ebpf.levels if is_traced else 0))
                worker.warm_up(llama.one_token)
                worker.run(llama)
        payload = worker.payload()
    sums = paired_sums(EngineRecord.from_plain(payload.get("engine")), sides)
    return {
        "sums_ns": {phase.value: list(each) for phase, each in sums.items()},
        "contention": payload["contention"],
    }


def _duplication(plan: EngineDuplicationPlan, place: RunPlace, limit_s: float) -> dict[str, Any]:
    """Duplicate kernels within evaluations, by the OpenCL layer in the worker."""
    from perfsuite.measure.opencl_engine_duplication import duplicate_engine_kernels  # NumPy, for the layer's log

    steps = StepsPlan(llama=plan.llama, layer_library=plan.layer_library)
    with LedWorker(place.worker(steps), limit_s=limit_s) as worker:
        worker.warm_up(plan.llama)
        found = duplicate_engine_kernels(worker, plan, place.board.run_file)
        return {"kernels": [each.to_plain() for each in found], "contention": worker.payload()["contention"]}


_LEADS: Mapping[type[Plan], Lead] = {EbpfOverheadPlan: _ebpf_overhead, EngineDuplicationPlan: _duplication}
