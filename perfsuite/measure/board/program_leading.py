"""A board as the place where workers are led: its program starts them, and the desk decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.measure.board.told_recorder import ToldRecorder
from perfsuite.measure.board.told_worker import Ask, Payload, ToldWorker
from perfsuite.measure.ebpf import required_ebpf
from perfsuite.measure.plan import LlamaPlan, StepsPlan
from perfsuite.records.tensor_layout import TensorLayout

if TYPE_CHECKING:
    from perfsuite.measure.ebpf import EbpfRecording


@dataclass(kw_only=True)
class ProgramPlace:
    """One run there."""

    ask: Ask
    payload: Payload
    environment: Mapping[str, str]
    options: list[str]
    #: What its processors are, as ``uname -m`` says.
    machine: str
    layout: Callable[[LlamaPlan], TensorLayout]
    #: Gets a file of the run.
    file: Callable[[Path], Path]
    #: The looks that are to be taken beside the worker, and those that were.
    looks: Mapping[str, Any] | None = None
    taken: Any = None
    #: What is done and seen beside the worker, as the program is asked for it; and how the worker ended, with that.
    beside: Mapping[str, Any] | None = None
    outcome: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def worker(self, plan: StepsPlan) -> Iterator[ToldWorker]:
        """Start a worker."""
        told = ToldWorker(
            self.ask,
            self.payload,
            plan,
            environment=self.environment,
            options=self.options,
            looks=self.looks,
            beside=self.beside,
        )
        with closing(told) as worker:
            try:
                yield worker
            finally:
                self.taken, self.outcome = worker.looks, worker.outcome

    def recording(self, pid: int, plan: LlamaPlan) -> EbpfRecording:
        """Attach the helper there to a worker, which has checked that its llama.cpp is the build of the layout."""
        from perfsuite.measure.ebpf import helper_options, ready_recording  # few runs are traced

        ebpf = required_ebpf(plan)
        arguments = helper_options(pid, ebpf, self.layout(plan), machine=self.machine)
        log = Path(ebpf.log_path).name
        return ready_recording(ToldRecorder(self.ask, program=ebpf.helper, arguments=arguments, log=log))
