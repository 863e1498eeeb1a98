"""From a run on the OpenCL backend to a trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, TraceRecorder
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, RecordedRun, learn_mapping
from perfsuite.trace.opencl.opencl_trace import opencl_trace
from tests.synthetic_engine_kernels import FUSED, Step, recorded
from tests.synthetic_opencl import EPOCH_NS

STEPS = [Step(phase=phase, kernels=FUSED) for phase in (Phase.PREFILL, Phase.DECODE)]
ENDS = (0, 1, 1, 1, 1)
FULL_SPEED = recorded(STEPS, is_grouped=False)
BY_GROUP = recorded(STEPS, group_ends=(ENDS, ENDS))
MAPPING = learn_mapping(BY_GROUP, FULL_SPEED)


def traced(
    run: RecordedRun = FULL_SPEED, mapping: KernelMapping = MAPPING, shapes: EngineRecord = BY_GROUP.record
) -> EngineTrace:
    return opencl_trace(run.record, align(run.trace), mapping, shapes=shapes)


def test_kernels_carry_the_node_that_they_compute() -> None:
    trace = traced()
    assert (trace.recorder, trace.problems, trace.cut) == (TraceRecorder.OPENCL, (), None)
    found = [
        (trace.kernels[each["value"]], trace.graphs[0][each["node"]].tensor.name if each["node"] != NOTHING else None)
        for each in trace.of(EventKind.KERNEL)
        if each["iteration"] == 1
    ]
    assert found == [
        ("rms_norm_mul", "attn_norm-0"),
        ("quantize", "Qcur-0"),
        ("mul_mat", "Qcur-0"),
        ("add", "l_out-0"),
        ("read", None),
    ]


def test_kernels_lie_on_the_hosts_clock() -> None:
    """A kernel begins after its call; an operator lasts from its first enqueue to the end of its last."""
    trace = traced()
    operators, kernels = trace.of(EventKind.OPERATOR), trace.of(EventKind.KERNEL)
    assert kernels["start_ns"].min() > operators["start_ns"].min() >= EPOCH_NS
    assert (kernels["end_ns"] - kernels["start_ns"])[0] == 1000
    trace = traced()
    names = [trace.graphs[each["graph"]][each["node"]].tensor.name for each in trace.of(EventKind.OPERATOR)]
    assert names == ["attn_norm-0", "Qcur-0", "l_out-0"] * 2
    commands = FULL_SPEED.trace.commands
    product = trace.of(EventKind.OPERATOR)[1]
    assert (product["start_ns"], product["end_ns"]) == (commands["host_start_ns"][1], commands["host_end_ns"][2])


def test_tokens_graphs_and_phases_are_there() -> None:
    trace = traced()
    assert trace.phases == ("prefill", "decode")
    graphs, tokens = trace.of(EventKind.GRAPH), trace.of(EventKind.TOKEN)
    assert graphs["iteration"].tolist() == tokens["iteration"].tolist() == [0, 1]
    assert trace.backends == ("OpenCL",)
    assert (graphs["start_ns"] >= tokens["start_ns"]).all()
    assert (graphs["end_ns"] <= tokens["end_ns"]).all()
    assert graphs["graph"].tolist() == [0, 0]


def test_an_iteration_that_was_never_learnt_has_no_operators() -> None:
    trace = traced(mapping=KernelMapping(sequences=()))
    assert trace.of(EventKind.OPERATOR).size == 0
    assert (trace.of(EventKind.KERNEL)["node"] == NOTHING).all()
    assert trace.problems == ("2 iterations have another sequence of kernels than any that was learnt",)


def test_one_repetition_of_shapes_serves_all() -> None:
    twice = recorded(STEPS * 2, is_grouped=False)
    trace = traced(twice)
    assert trace.of(EventKind.OPERATOR)["iteration"].tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert trace.problems == ()
    other = recorded([*STEPS, STEPS[1]], group_ends=(ENDS, ENDS))
    with pytest.raises(MeasurementError, match="the record with the graphs has 3 iterations, the traced run 2"):
        traced(shapes=other.record)


def test_what_the_layer_lost_is_reported() -> None:
    lost = replace(FULL_SPEED, trace=replace(FULL_SPEED.trace, n_lost=3, n_unfinished=None))
    trace = traced(lost)
    assert trace.n_lost == 3
    assert "the OpenCL layer lost 3 commands" in trace.problems
    assert trace.cut is not None
    commands = FULL_SPEED.trace.commands.copy()
    commands["end_ns"][1] = commands["start_ns"][1] - 5
    trace = traced(replace(FULL_SPEED, trace=replace(FULL_SPEED.trace, commands=commands)))
    assert trace.of(EventKind.KERNEL).size == commands.size - 1
    assert trace.problems == ("1 of 8 kernels have no START and END that can be right, and are left out",)
    assert trace.of(EventKind.OPERATOR).size == 6
