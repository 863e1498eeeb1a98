"""Time by operator and kernel from a mapped run."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.events import Phase
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.kernel_mapping import learn_mapping
from perfsuite.trace.opencl.kernel_samples import map_run
from tests.synthetic_engine_kernels import FUSED, KERNEL_NS, Step, recorded

STEPS = (Phase.PREFILL, Phase.DECODE, Phase.DECODE)
RUN = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS])
GROUP_ENDS = ((0, 1, 1, 1, 1),) * 2
BY_GROUP = recorded([Step(phase=phase, kernels=FUSED) for phase in STEPS], group_ends=GROUP_ENDS)
LEARNT = learn_mapping(BY_GROUP, RUN)


def test_operators_take_what_their_kernels_occupy() -> None:
    """An operator of two kernels has the time of both, dispatch included; the rest is the phase's own."""
    mapped = map_run(RUN.record, align(RUN.trace), LEARNT)
    assert not mapped.problems
    assert [len(mapped.phases[phase]) for phase in (Phase.PREFILL, Phase.DECODE)] == [1, 2]
    step = mapped.phases[Phase.DECODE][1]
    occupied_ns = KERNEL_NS + 90  # from QUEUED, for each kernel finds the queue empty
    assert step.traced.role_ns == {"attn_norm": occupied_ns, "Qcur": 2 * occupied_ns, "l_out": occupied_ns}
    assert step.kernel_ns == dict.fromkeys(("rms_norm_mul", "quantize", "mul_mat", "add"), KERNEL_NS)
    assert step.traced.rest_ns == step.traced.span.duration_ns - 4 * occupied_ns


def test_another_sequence_is_a_problem() -> None:
    """A step whose kernels were never seen in this order has no operators, and the run says so once."""
    other = (("rms_norm_mul",), (), (), ("mul_mat", "quantize"), ("add",))
    run = recorded([Step(phase=Phase.PREFILL, kernels=FUSED), Step(phase=Phase.DECODE, kernels=other)])
    mapped = map_run(run.record, align(run.trace), LEARNT)
    assert mapped.problems == ("decode: its kernels are another sequence than any that was learnt (1 of 1 times)",)
    assert mapped.phases[Phase.DECODE][0].traced.role_ns == {}


def test_unsound_times_are_a_problem() -> None:
    """A kernel without times makes its step uncountable."""
    commands = RUN.trace.commands.copy()
    commands["end_ns"][7] = commands["start_ns"][7] - 1
    mapped = map_run(RUN.record, align(replace(RUN.trace, commands=commands)), LEARNT)
    assert mapped.problems == ("decode: 1 of 4 kernels have no sound times (1 of 2 times)",)


def test_lost_commands_are_a_problem() -> None:
    """A layer that lost commands cannot vouch for any time."""
    mapped = map_run(RUN.record, align(replace(RUN.trace, n_lost=3)), LEARNT)
    assert mapped.problems[0] == "the OpenCL layer lost 3 commands"


def test_a_phase_without_kernels_is_a_problem() -> None:
    """A prefill in which the device was never asked for anything ran elsewhere."""
    run = recorded([Step(phase=Phase.PREFILL, kernels=((), (), (), (), ()))])
    mapped = map_run(run.record, align(run.trace), LEARNT)
    assert mapped.problems == ("prefill: no kernel was enqueued (1 of 1 times)",)
