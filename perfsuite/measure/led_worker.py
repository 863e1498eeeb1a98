"""A replicate of llama.cpp that is led step by step: what follows or changes its process is started between steps.

The eBPF recorder is attached once the model is loaded, and switched from run to run; the OpenCL layer gets which
launch to duplicate. Both are done from here, with the process waiting, so that the worker itself is the same program
whoever looks on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.measure.ebpf import drawn_sides, paired_sums, required_ebpf
from perfsuite.measure.launch import READY_MARK, Observe, planned_engine
from perfsuite.measure.plan import EbpfOverheadPlan, EngineDuplicationPlan, LlamaPlan, Plan, StepsPlan, limit_text
from perfsuite.measure.worker_lines import WaitingWorker
from perfsuite.records.events import EngineRecord
from perfsuite.records.trace_levels import TraceLevel

if TYPE_CHECKING:
    from perfsuite.measure.ebpf import EbpfRecording


class Waiting(Protocol):
    """A worker that waits for lines, as `WaitingWorker`, wherever it runs."""

    task: str

    @property
    def pid(self) -> int:
        """Its process, where it runs."""

    def tell(self, line: str, deadline_s: float) -> None:
        """Send a line; `TimeoutError` beyond the deadline."""

    def answer(self, mark: str | None, deadline_s: Callable[[], float]) -> str | None:
        """Return the next line with a mark, None once its output is closed; `TimeoutError` beyond the deadline."""

    def end_input(self) -> None:
        """Say that nothing more is asked."""

    def payload(self) -> dict[str, Any]:
        """Return what it has measured, once it has ended, or raise with its reason."""

    def early_end(self, before: str) -> MeasurementError:
        """Return why it ended too early."""


class Place(Protocol):
    """Where workers are led: this machine, or a board at the end of a link."""

    def worker(self, plan: StepsPlan) -> AbstractContextManager[Waiting]:
        """Start a worker, which is ended with the context."""

    def recording(self, pid: int, plan: LlamaPlan) -> EbpfRecording:
        """Attach the eBPF helper of a plan to a worker there; raises as `start_ebpf` does."""

    def file(self, path: Path) -> Path:
        """Return where a file of that place can be read here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """This machine; who observes a worker does so until after it has ended."""

    environment: Mapping[str, str]
    observe: Observe | None = None

    @contextmanager
    def worker(self, plan: StepsPlan) -> Iterator[Waiting]:
        """Start a worker."""
        with ExitStack() as stack:
            folder = stack.enter_context(work_folder())
            worker = stack.enter_context(closing(WaitingWorker(plan, folder, self.environment)))
            if self.observe is not None:
                stack.enter_context(self.observe(worker.pid))
                stack.callback(worker.close)
            yield worker

    def recording(self, pid: int, plan: LlamaPlan) -> EbpfRecording:
        """Attach the helper to a worker."""
        from perfsuite.measure.ebpf import start_ebpf  # few runs are traced
        from perfsuite.measure.tensor_layout import tensor_layout

        layout = tensor_layout(planned_engine(plan), Path(plan.cache_dir))
        return start_ebpf(pid, required_ebpf(plan), layout)

    def file(self, path: Path) -> Path:
        """Return the file itself."""
        return path


class LedWorker:
    """A worker that takes one step after the other; a context manager that starts and ends it."""

    def __init__(self, worker: AbstractContextManager[Waiting], *, limit_s: float) -> None:
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
Lead: TypeAlias = Callable[[Any, Place, float], dict[str, Any]]


def lead_of(plan: Plan) -> Lead | None:
    """Return how a plan is led; None for one that a worker runs by itself."""
    if isinstance(plan, LlamaPlan) and plan.ebpf is not None:
        return _traced_by_ebpf
    return _LEADS.get(type(plan))


def _traced_by_ebpf(plan: LlamaPlan, place: Place, limit_s: float) -> dict[str, Any]:
    """Run a replicate which the eBPF recorder follows from the end of the warm-up on."""
    with LedWorker(place.worker(StepsPlan(llama=replace(plan, ebpf=None))), limit_s=limit_s) as worker:
        worker.warm_up(plan)
        with place.recording(worker.pid, plan) as recording:
            worker.run(plan)
            notes = recording.finish()
        return {**worker.payload(), "ebpf_notes": list(notes)}


def _ebpf_overhead(plan: EbpfOverheadPlan, place: Place, limit_s: float) -> dict[str, Any]:
    """Run the same work by turns with probes attached and without, two by two in an order that is drawn.

    A process, its buffers and its threads are the same on both sides then, and so is the helper program, which has
    nothing to do while nothing is attached. A turn begins with one token that is not counted: it meets the breakpoints
    that have just been set.
    """
    llama, ebpf = plan.llama, required_ebpf(plan.llama)
    sides = drawn_sides(plan.n_pairs, random.Random())
    with LedWorker(place.worker(StepsPlan(llama=replace(llama, ebpf=None))), limit_s=limit_s) as worker:
        worker.warm_up(llama)
        with place.recording(worker.pid, llama) as recording:
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


def _duplication(plan: EngineDuplicationPlan, place: Place, limit_s: float) -> dict[str, Any]:
    """Duplicate kernels within evaluations, by the OpenCL layer in the worker."""
    from perfsuite.measure.opencl_engine_duplication import duplicate_engine_kernels  # NumPy, for the layer's log

    steps = StepsPlan(llama=plan.llama, layer_library=plan.layer_library)
    with LedWorker(place.worker(steps), limit_s=limit_s) as worker:
        worker.warm_up(plan.llama)
        found = duplicate_engine_kernels(worker, plan, place.file)
        return {"kernels": [each.to_plain() for each in found], "contention": worker.payload()["contention"]}


_LEADS: Mapping[type[Plan], Lead] = {EbpfOverheadPlan: _ebpf_overhead, EngineDuplicationPlan: _duplication}
