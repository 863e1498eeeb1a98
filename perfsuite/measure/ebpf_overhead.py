"""What the eBPF recorder costs: one process runs the same work by turns with its probes attached and without.

A process, its buffers and its threads are the same on both sides then, and so is the helper program, which has nothing
to do while nothing is attached. Between processes such things make a percent of difference.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from perfsuite.measure.plan import LlamaPlan
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
    one_token = replace(plan, n_prompt=min(plan.n_prompt, 1), n_depth=0)
    sides: list[bool] = []
    for is_traced in _drawn_sides(n_pairs, order):
        recording.switch(levels if is_traced else TraceLevel(0))
        engine.warm_up(one_token)
        run()
        sides.append(is_traced)
    return tuple(sides)


def _drawn_sides(n_pairs: int, order: random.Random) -> Iterator[bool]:
    for _ in range(n_pairs):
        first = order.random() < 0.5
        yield from (first, not first)


def paired_sums(record: EngineRecord, sides: tuple[bool, ...]) -> dict[Phase, tuple[list[int], list[int]]]:
    """Return, by phase, what each pair's plain and traced turn took, in ns; a turn is one repetition of the record.

    A decode is the sum of its steps, so that what hits only a few of them counts as well.
    """
    sums = {phase: [0] * len(sides) for phase in COMPARED}
    for span in record.spans:
        if span.phase in sums and span.repetition < len(sides):
            sums[span.phase][span.repetition] += span.duration_ns
    paired = {}
    for phase, turns in sums.items():
        plain = [ns for ns, is_traced in zip(turns, sides, strict=True) if not is_traced]
        traced = [ns for ns, is_traced in zip(turns, sides, strict=True) if is_traced]
        paired[phase] = (plain, traced)
    return paired
