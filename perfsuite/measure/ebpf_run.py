"""The eBPF recorder beside a run of the suite's own, started from within the worker once its model is loaded.

What the eBPF recorder costs: one process runs the same work by turns with its probes attached and without.

A process, its buffers and its threads are the same on both sides then, and so is the helper program, which has nothing
to do while nothing is attached. Between processes such things make a percent of difference.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import MeasurementError
from perfsuite.measure.engine import find_engine
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.trace_levels import TraceLevel

if TYPE_CHECKING:
    from perfsuite.measure.ebpf import EbpfRecording
    from perfsuite.measure.llama import LlamaEngine


#: What is compared.
COMPARED = (Phase.PREFILL, Phase.DECODE)


def alternate(
    engine: LlamaEngine,
    recording: EbpfRecording,
    plan: LlamaPlan,
    levels: TraceLevel,
    n_pairs: int,
    *,
    order: random.Random,
    run: Callable[[], None],
) -> tuple[bool, ...]:
    """Run the plan's work `2 * n_pairs` times, two by two in an order that is drawn; return which ran traced.

    A turn begins with one token that is not counted: it meets the breakpoints that have just been set. `run` runs the
    work once, so that the caller can watch over it.
    """
    drawn = (order.random() < 0.5 for _ in range(n_pairs))
    sides = tuple(side for first in drawn for side in (first, not first))
    for is_traced in sides:
        recording.switch(levels if is_traced else TraceLevel(0))
        engine.warm_up(plan.one_token)
        run()
    return sides


def paired_sums(record: EngineRecord, sides: tuple[bool, ...]) -> dict[Phase, tuple[list[int], list[int]]]:
    """Return, by phase, what each pair's plain and traced turn took, in ns; a turn is one repetition of the record.

    A decode is the sum of its steps, so that what hits only a few of them counts as well.
    """
    sums = {phase: [0] * len(sides) for phase in COMPARED}
    for span in record.spans:
        if span.phase in sums and span.repetition < len(sides):
            sums[span.phase][span.repetition] += span.duration_ns

    def of_side(turns: list[int], traced: bool) -> list[int]:
        return [ns for ns, is_traced in zip(turns, sides, strict=True) if is_traced is traced]

    return {phase: (of_side(turns, False), of_side(turns, True)) for phase, turns in sums.items()}


@contextmanager
def ebpf_recorded(plan: LlamaPlan) -> Iterator[list[str]]:
    """Record what this process does meanwhile, where its plan asks for that; in the end the list says what is left out.

    Raises `MeasurementError` where the helper cannot attach, or ended too early.
    """
    notes: list[str] = []
    if plan.ebpf is None:
        yield notes
        return
    with start_recording(plan, plan.ebpf) as recording:
        yield notes
        notes += recording.finish()


def start_recording(plan: LlamaPlan, ebpf: EbpfPlan) -> EbpfRecording:
    """Attach the helper to this process; raises as `start_ebpf` does."""
    from perfsuite.measure.ebpf import start_ebpf  # few runs are traced
    from perfsuite.measure.tensor_layout import tensor_layout

    layout = tensor_layout(find_engine(Path(plan.library_dir)), Path(plan.cache_dir))
    return start_ebpf(os.getpid(), ebpf, layout)


def required_ebpf(plan: LlamaPlan) -> EbpfPlan:
    """Return what a plan says of the eBPF recorder; `MeasurementError` where it says nothing."""
    if plan.ebpf is None:
        raise MeasurementError("the plan of an eBPF recording names no helper; run again")
    return plan.ebpf
