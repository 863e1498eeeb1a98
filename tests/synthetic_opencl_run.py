"""A made-up run of a known workload on an OpenCL device: one kernel for each operator, of the operator's own cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfsuite.expectation.graph import Operator
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.records.events import EMBEDDING_ROLE, EngineRecord, Phase, Span
from perfsuite.records.opencl_commands import COMMAND_DTYPE, Commands
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, KernelSequence, RecordedRun

from .synthetic_opencl import EPOCH_NS, trace

#: Between two launches, and what a phase of the processor takes.
GAP_NS, PASS_NS = 2000, 500_000


def operators(workload: LlamaWorkload, phase: Phase) -> tuple[Operator, ...]:
    return tuple(each for each in workload.graph(phase) if each.role != EMBEDDING_ROLE)


def kernel_of(operator: Operator) -> str:
    """Return the name of an operator's kernel: all operators of one kind have the same."""
    return f"kernel_{operator.op.lower()}"


def mapping_of(workload: LlamaWorkload) -> KernelMapping:
    return KernelMapping(
        sequences=tuple(
            KernelSequence(
                phase=phase,
                kernels=tuple(kernel_of(each) for each in operators(workload, phase)),
                roles=tuple(each.role for each in operators(workload, phase)),
            )
            for phase in workload.graph_phases()
        )
    )


def run_of(workload: LlamaWorkload, slowdown: Mapping[str, float], noise: float = 1.0) -> RecordedRun:
    """Return one repetition of a workload, some of whose kernels take longer by a factor.

    Bytes move at 1 GB/s and 1 GFLOPS are computed, so that no ceiling forbids any time.
    """
    made = _Run(slowdown, noise)
    made.evaluate(Phase.PREFILL, operators(workload, Phase.PREFILL), workload.scenario.n_prompt)
    for _ in range(workload.scenario.n_gen):
        made.evaluate(Phase.DECODE, operators(workload, Phase.DECODE), 1)
    whole = Span(
        phase=Phase.END_TO_END, repetition=0, token=0, n_tokens=made.n_tokens, start_ns=EPOCH_NS, end_ns=made.at_ns
    )
    record = EngineRecord(
        engine_version="llama 1, ggml 1 abc",
        spans=(*made.spans, whole),
        graphs=(),
        n_dropped=0,
    )
    return RecordedRun(record=record, trace=trace(made.commands, names=tuple(made.names)))


class _Run:
    def __init__(self, slowdown: Mapping[str, float], noise: float) -> None:
        self.at_ns, self.n_tokens = EPOCH_NS, 0
        self.spans: list[Span] = []
        self.commands: list[Commands] = []
        self.names: dict[str, int] = {}
        self._slowdown, self._noise = slowdown, noise
        self._n_commands = 0

    def evaluate(self, phase: Phase, graph: tuple[Operator, ...], n_tokens: int) -> None:
        start_ns = self.at_ns
        made = np.zeros(len(graph), COMMAND_DTYPE)
        made["sequence"] = self._n_commands + np.arange(len(graph))
        made["queue"] = made["type"] = made["work_dim"] = made["global"] = 1
        self._n_commands += len(graph)
        for each, operator in zip(made, graph, strict=True):
            self._launch(each, operator)
        self.commands.append(made)
        self._span(phase, n_tokens, start_ns)
        self.n_tokens += n_tokens
        for after in (Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING):
            start_ns = self.at_ns
            self.at_ns += round(PASS_NS * self._noise)
            self._span(after, 1, start_ns)

    def _launch(self, command: np.void, operator: Operator) -> None:
        name = kernel_of(operator)
        cost = operator.cost
        usual_ns = 1000 + cost.moved_bytes + cost.flops
        executed_ns = round(usual_ns * self._slowdown.get(name, 1.0) * self._noise)
        command["name"] = self.names.setdefault(name, len(self.names) + 1)
        command["host_start_ns"], command["host_end_ns"] = self.at_ns, self.at_ns + 200
        for offset_ns, field in ((100, "queued_ns"), (200, "submit_ns"), (300, "start_ns")):
            command[field] = self.at_ns + offset_ns
        command["end_ns"] = self.at_ns + 300 + executed_ns
        self.at_ns += 300 + executed_ns + GAP_NS

    def _span(self, phase: Phase, n_tokens: int, start_ns: int) -> None:
        self.spans.append(
            Span(
                phase=phase,
                repetition=0,
                token=self.n_tokens,
                n_tokens=n_tokens,
                start_ns=start_ns,
                end_ns=self.at_ns,
            )
        )
