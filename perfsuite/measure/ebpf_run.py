"""What the eBPF recorder costs: the order of a process's turns with and without it, and what each pair of them took."""

from __future__ import annotations

import random

from perfsuite.errors import MeasurementError
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.events import EngineRecord, Phase

#: What is compared.
COMPARED = (Phase.PREFILL, Phase.DECODE)


def drawn_sides(n_pairs: int, order: random.Random) -> tuple[bool, ...]:
    """Return which of `2 * n_pairs` turns are traced: two by two, in an order that is drawn."""
    drawn = (order.random() < 0.5 for _ in range(n_pairs))
    return tuple(side for first in drawn for side in (first, not first))


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


def required_ebpf(plan: LlamaPlan) -> EbpfPlan:
    """Return what a plan says of the eBPF recorder; `MeasurementError` where it says nothing."""
    if plan.ebpf is None:
        raise MeasurementError("the plan of an eBPF recording names no helper; run again")
    return plan.ebpf
