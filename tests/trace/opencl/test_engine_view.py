"""What a run shows of its device, from made-up runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfsuite.records.events import Phase
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.engine_view import EngineView, PhaseView, engine_view
from perfsuite.trace.opencl.kernel_mapping import RecordedRun, learn_mapping
from perfsuite.trace.opencl.kernel_samples import map_run
from tests.synthetic_engine_kernels import FUSED, KERNEL_NS, Step, recorded
from tests.synthetic_opencl import DEVICE, queue

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


def test_what_cannot_be_mapped_is_a_problem() -> None:
    other = (("rms_norm_mul",), (), (), ("mul_mat", "quantize"), ("add",))
    run = recorded([Step(phase=Phase.PREFILL, kernels=FUSED), Step(phase=Phase.DECODE, kernels=other)])
    mapped = map_run(run.record, align(run.trace), LEARNT)
    assert mapped.problems == ("decode: its kernels are another sequence than any that was learnt (1 of 1 times)",)
    assert mapped.phases[Phase.DECODE][0].traced.role_ns == {}
    mapped = map_run(RUN.record, align(replace(RUN.trace, n_lost=3)), LEARNT)
    assert mapped.problems[0] == "the OpenCL layer lost 3 commands"
    run = recorded([Step(phase=Phase.PREFILL, kernels=((), (), (), (), ()))])
    mapped = map_run(run.record, align(run.trace), LEARNT)
    assert mapped.problems == ("prefill: no kernel was enqueued (1 of 1 times)",)


@pytest.mark.parametrize(("n_dropped", "is_valid"), [(1, True), (3, False)])
def test_a_kernel_with_many_launches_dropped_is_invalid_alone(n_dropped: int, is_valid: bool) -> None:
    """Of ten launches one may be dropped, for which the others stand; the line has the number and the reason."""
    run = run_of(20)
    commands = run.trace.commands.copy()
    launches = np.flatnonzero(commands["name"] == run.trace.names.index("mul_mat"))[-n_dropped:]
    commands["end_ns"][launches] = commands["start_ns"][launches] - 1
    mapped = map_run(run.record, align(replace(run.trace, commands=commands)), LEARNT)
    text = "3 of 20 launches have a START or an END that cannot be right (3 did not end after the start)"
    assert (mapped.problems, mapped.kernel_problems) == ((), {} if is_valid else {(Phase.DECODE, "mul_mat"): text})
    assert {role for _, role in mapped.operator_problems} == (set() if is_valid else {"l_out"})
    assert mapped.phases[Phase.DECODE][-1].kernel_ns == dict.fromkeys(KERNELS, KERNEL_NS)
    (note,) = mapped.notes
    odd = f"{n_dropped} did not end after the start"
    assert note == f"A device, driver 1.2: times of {n_dropped} of {commands.size} commands cannot be right: {odd}"


KERNELS = ("rms_norm_mul", "quantize", "mul_mat", "add")
#: The four kernels and the reading at the end, each queued 10 ns into its call.
READ_NS, OCCUPIED_NS = 10, KERNEL_NS + 90


def run_of(n_decodes: int) -> RecordedRun:
    phases = (Phase.PREFILL, *[Phase.DECODE] * n_decodes)
    return recorded([Step(phase=phase, kernels=FUSED) for phase in phases])


def grown(run: RecordedRun, kernel: str, by_ns: int) -> RecordedRun:
    commands = run.trace.commands.copy()
    (here,) = np.nonzero(commands["name"] == run.trace.names.index(kernel))
    commands["end_ns"][here] += by_ns * np.arange(here.size)
    return replace(run, trace=replace(run.trace, commands=commands))


def view_of(run: RecordedRun) -> EngineView:
    return engine_view(run.record, align(run.trace), LEARNT)


def phases(view: EngineView) -> dict[Phase, PhaseView]:
    return {each.phase: each for each in view.phases}


def test_times_of_a_phase_are_its_median() -> None:
    run = run_of(3)
    spans = list(run.record.spans)
    usual_ns = spans[1].duration_ns
    spans[2] = replace(spans[2], end_ns=spans[2].end_ns + 10 * usual_ns)
    view = phases(view_of(replace(run, record=replace(run.record, spans=tuple(spans)))))[Phase.DECODE]
    assert (view.duration_ns, view.operators_ratio) == (usual_ns, pytest.approx(4 * OCCUPIED_NS / usual_ns))
    busy_ns = 4 * KERNEL_NS + READ_NS
    usual, long, last = (window.idle_ratio for window in view.idle)
    assert usual == last == pytest.approx(1 - busy_ns / usual_ns)
    assert long == pytest.approx(1 - busy_ns / (11 * usual_ns))
    run = run_of(2)
    commands = run.trace.commands.copy()
    commands["queue"][commands["name"] == 0] = 2
    trace = replace(
        run.trace, commands=commands, devices=(DEVICE, DEVICE), queues=(queue(2, device=0), queue(1, device=1))
    )
    view = phases(view_of(replace(run, trace=trace)))[Phase.DECODE]
    assert [window.busy_ns for window in view.idle] == [4 * KERNEL_NS] * 2


def test_a_kernel_that_grows_comes_first() -> None:
    view = view_of(grown(run_of(12), "mul_mat", 5))
    assert [each.name for each in view.growth if each.grows] == ["mul_mat"]
    assert (view.growth[0].slope_ns_per_step, len(view.growth[0].step_totals_ns)) == (pytest.approx(5), 12)
    run = grown(run_of(24), "mul_mat", 5)
    spans = tuple(replace(span, repetition=int(number > 12)) for number, span in enumerate(run.record.spans))
    view = view_of(replace(run, record=replace(run.record, spans=spans)))
    assert {len(each.step_totals_ns) for each in view.growth} == {12}
    view = view_of(run_of(2))
    assert (view.growth, [each.n_outcomes for each in view.forecast_errors]) == ((), [0] * len(view.forecast_errors))
    run = run_of(2)
    view = view_of(replace(run, trace=replace(run.trace, n_lost=3)))
    assert view.problems == ("the OpenCL layer lost 3 commands",)
