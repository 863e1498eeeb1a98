"""A made-up engine on a made-up device: what a driver, a recorder and an OpenCL layer see of the same evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.records.events import EngineRecord, Node, Phase, Span, Tensor
from perfsuite.records.opencl_commands import CommandType
from perfsuite.testing.engine_traces import evaluation
from perfsuite.trace.opencl.kernel_mapping import RecordedRun
from tests.synthetic_opencl import EPOCH_NS, command, trace

#: Kernels take so long, and are enqueued at this distance.
KERNEL_NS = 1000
STEP_NS = 1_000_000

#: Node by node a norm takes two kernels, in a group one; a view takes none, and a product two.
NODES = (("norm-0", "RMS_NORM"), ("attn_norm-0", "MUL"), ("view-0", "VIEW"), ("Qcur-0", "MUL_MAT"), ("l_out-0", "ADD"))
ALONE = (("rms_norm",), ("mul",), (), ("quantize", "mul_mat"), ("add",))
FUSED = (("rms_norm_mul",), (), (), ("quantize", "mul_mat"), ("add",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One evaluation: the groups of its kernels in the order of their nodes."""

    phase: Phase
    kernels: Sequence[Sequence[str]]


def recorded(
    steps: Sequence[Step], *, group_ends: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()), is_grouped: bool = True
) -> RecordedRun:
    """Return a run of the steps, one after the other; without groups the recorder sees nothing."""
    names = tuple(dict.fromkeys(name for step in steps for group in step.kernels for name in group))
    commands, spans, evaluations = [], [], []
    for number, step in enumerate(steps):
        start_ns = at_ns = EPOCH_NS + number * STEP_NS
        ends_ns: list[int] = []
        for group in step.kernels:
            for name in group:
                at_ns += 2 * KERNEL_NS
                times = [at_ns + 10, at_ns + 20, at_ns + 100, at_ns + 100 + KERNEL_NS]
                commands.append(command(len(commands), at_ns, times, call_ns=30, name=1 + names.index(name)))
            ends_ns.append(at_ns + 2 * KERNEL_NS)
            at_ns += 2 * KERNEL_NS
        read = [at_ns + 10, at_ns + 20, at_ns + 30, at_ns + 40]
        commands.append(command(len(commands), at_ns, read, call_ns=30, name=0, type=CommandType.READ))
        spans.append(
            Span(phase=step.phase, repetition=0, token=number, n_tokens=1, start_ns=start_ns, end_ns=at_ns + 5000)
        )
        ends = group_ends[step.phase is Phase.DECODE]
        kept = tuple(end for node, end in enumerate(ends_ns) if node >= len(ends) or ends[node])
        evaluations.append(evaluation(start_ns, *kept))
    record = EngineRecord(
        engine_version="llama 1, ggml 1",
        spans=tuple(spans),
        graphs=(tuple(_node(*each) for each in NODES),) if is_grouped else (),
        events=b"".join(evaluations) if is_grouped else b"",
        n_dropped=0,
    )
    return RecordedRun(record=record, trace=trace(commands, names=names), group_ends=group_ends)


def _node(name: str, op: str) -> Node:
    tensor = Tensor(name=name, type="f32", ne=(64, 1, 1, 1), nb=(4, 256, 256, 256))
    return Node(tensor=tensor, op=op, timed=op != "VIEW", fused=False, sources=(tensor,))
