"""Measures a policy: the choice by size, and what it promises.

Choosing the fastest of many prefers those that noise has favoured, and on the same samples their gain would look larger
than it is. So the processes are parted: one half chooses, at the sizes that were asked for, and the promise is what the
choice gains in the others, which had no part in it, at sizes that are drawn from the range of each row.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_choice import Ranges, Span, choose_ranges
from perfsuite.experiments.shapes.policy_promise import PromisePlan
from perfsuite.experiments.shapes.policy_question import PolicyQuestion
from perfsuite.experiments.shapes.policy_record import NO_GAIN, MeasuredSubject, PolicyRow, PolicyTable
from perfsuite.experiments.shapes.policy_rounds import (
    LEAST_PROCESSES,
    Floats,
    Progress,
    RoundDesign,
    SubjectMeters,
    Vetted,
    faults,
    measure_rounds,
    no_progress,
    times_by_case,
    vetted,
    without,
)


def measure_policy(
    question: PolicyQuestion,
    meters: SubjectMeters,
    *,
    design: RoundDesign,
    seed: int = 0,
    progress: Progress = no_progress,
) -> tuple[PolicyTable, tuple[MeasuredSubject, ...]]:
    """Measure every choice at every size, choose, and measure what that gains; return also on what it was measured.

    Raises PolicyError: no choice is left, or the processes cannot be parted into two halves that have an interval;
    PerfsuiteError: a subject cannot run, or a process died.
    """
    least = 2 * LEAST_PROCESSES
    if design.n_processes % 2 or design.n_processes < least:
        raise PolicyError(
            f"{design.n_processes} processes: expected an even number from {least} on; one half chooses, one promises"
        )
    half = replace(design, n_processes=design.n_processes // 2)
    n_half = half.n_processes * (design.n_rounds + 1)
    found = vetted(question, meters)
    asked = found.question
    cases = [asked.case(choice, size) for choice in asked.choices for size in asked.sizes]
    log_ns = measure_rounds(meters, cases, design=half, seed=seed, progress=lambda done, _: progress(done, 2 * n_half))
    grid = log_ns.reshape(half.n_processes, len(asked.choices), len(asked.sizes))
    found, plan = _sound(found, grid, meters, seed)
    times = times_by_case(
        meters,
        plan.cases,
        design=half,
        seed=seed + 1,
        progress=lambda done, _: progress(n_half + done, 2 * n_half),
    )
    if not plan.cases:
        progress(2 * n_half, 2 * n_half)
    return plan.promising(times), found.subjects


def _sound(found: Vetted, grid: Floats, meters: SubjectMeters, seed: int) -> tuple[Vetted, PromisePlan]:
    """Choose, and choose anew without what cannot be computed, or is wrong, at a size that is drawn for a promise."""
    while True:
        plan = PromisePlan.of(_table(found, grid), found.question, seed=seed)
        reasons = faults(meters, plan.cases)
        lost = next((case for case, reason in reasons.items() if reason is not None), None)
        if lost is None:
            return found, plan
        place = next(place for place, choice in enumerate(found.question.choices) if found.question.is_of(choice, lost))
        found, grid = without(found, place, str(reasons[lost])), np.delete(grid, place, axis=1)


def _table(found: Vetted, grid: Floats) -> PolicyTable:
    ranges, asked = choose_ranges(grid), found.question
    return PolicyTable(
        decides=asked.decides,
        operation=asked.shape.operation.value,
        type=asked.shape.type,
        dimension=asked.dimension,
        fixed=dict(asked.fixed),
        measured_sizes=asked.sizes,
        n_processes=len(grid),
        default=asked.choices[ranges.default],
        worst=asked.choices[ranges.worst],
        gain_over_default=NO_GAIN,
        gain_over_worst=NO_GAIN,
        rows=_rows(asked, ranges, grid.mean(axis=0)),
        left_out=found.left_out,
    )


def _rows(asked: PolicyQuestion, ranges: Ranges, times: Floats) -> tuple[PolicyRow, ...]:
    rows: list[PolicyRow] = []
    for place, span in enumerate(ranges.spans):
        following = ranges.spans[place + 1] if place + 1 < len(ranges.spans) else None
        rows.append(
            PolicyRow(
                least=rows[-1].most + 1 if rows else asked.sizes[0],
                most=asked.sizes[-1] if following is None else _end(asked, span, following, times),
                measured_least=asked.sizes[span.first],
                measured_most=asked.sizes[span.last],
                choice=asked.choices[span.choice],
                gain_over_default=NO_GAIN,
                gain_over_worst=NO_GAIN,
            )
        )
    return tuple(rows)


def _end(asked: PolicyQuestion, left: Span, right: Span, times: Floats) -> int:
    first, last = (float(times[right.choice, at] - times[left.choice, at]) for at in (left.last, right.first))
    return last_size((asked.sizes[left.last], asked.sizes[right.first]), (first, last))


def last_size(sizes: tuple[int, int], left_leads: tuple[float, float]) -> int:
    """Return the last size at which the left choice holds, between a measured size of it and one of the right choice.

    With d the logarithm of the right one's time over the left one's, at both sizes, the crossover is where the line of
    d over the logarithm of the size is 0. Where d does not fall from above 0 to below it, noise hides the crossover,
    and it is put in the geometric middle.
    """
    (low, high), (first, last) = sizes, left_leads
    part = first / (first - last) if first > 0 > last else 0.5
    crossover = math.exp(math.log(low) + part * (math.log(high) - math.log(low)))
    return min(max(low, math.floor(crossover)), high - 1)
