"""Measures a policy: the choice by size, and what it promises.

Choosing the fastest of many prefers those that noise has favoured, and on the same samples their gain would look larger
than it is. So processes are parted: those of even number choose, and the promise is what the choice gains in the
others, which had no part in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfsuite.errors import PolicyError
from perfsuite.records.shape_policy import NO_GAIN, Gain, MeasuredSubject, PolicyRow, PolicyTable
from perfsuite.verdict.shapes.policy_choice import Ranges, Span, choose_ranges
from perfsuite.verdict.shapes.policy_gain import gain_of_grid
from perfsuite.verdict.shapes.policy_question import PolicyQuestion
from perfsuite.verdict.shapes.policy_rounds import (
    Floats,
    Progress,
    RoundDesign,
    SubjectMeters,
    measure_rounds,
    no_progress,
)
from perfsuite.verdict.shapes.policy_vetting import Vetted, vetted

STANDARD_DESIGN = RoundDesign()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """A table, and on what it was measured."""

    table: PolicyTable
    subjects: tuple[MeasuredSubject, ...]


def measure_policy(
    question: PolicyQuestion,
    meters: SubjectMeters,
    *,
    design: RoundDesign = STANDARD_DESIGN,
    seed: int = 0,
    progress: Progress = no_progress,
) -> MeasuredTable:
    """Measure every choice at every size, and answer the question.

    Raises
    ------
    PolicyError
        No choice is left, or the processes cannot be parted into two halves of 2 or more.
    PerfsuiteError
        A subject cannot run, or a process died.
    """
    if design.n_processes % 2:
        raise PolicyError(f"{design.n_processes} processes: expected an even number; one half chooses, one promises")
    found = vetted(question, meters)
    asked = found.question
    cases = [asked.case(choice, size) for choice in asked.choices for size in asked.sizes]
    log_ns = measure_rounds(meters, cases, design=design, seed=seed, progress=progress)
    grid = log_ns.reshape(design.n_processes, len(asked.choices), len(asked.sizes))
    return MeasuredTable(table=_table(found, grid), subjects=found.subjects)


def _table(found: Vetted, grid: Floats) -> PolicyTable:
    choosing, promising = grid[0::2], grid[1::2]
    ranges, asked = choose_ranges(choosing), found.question
    chosen = [span.choice for span in ranges.spans for _ in range(span.first, span.last + 1)]
    return PolicyTable(
        decides=asked.decides,
        operation=asked.shape.operation.value,
        type=asked.shape.type,
        dimension=asked.dimension,
        fixed=asked.fixed,
        measured_sizes=asked.sizes,
        n_processes=len(promising),
        default=asked.choices[ranges.default],
        worst=asked.choices[ranges.worst],
        gain_over_default=_promised(promising, chosen, ranges.default),
        gain_over_worst=_promised(promising, chosen, ranges.worst),
        rows=_rows(asked, ranges, choosing, promising),
        left_out=found.left_out,
    )


def _rows(asked: PolicyQuestion, ranges: Ranges, choosing: Floats, promising: Floats) -> tuple[PolicyRow, ...]:
    rows: list[PolicyRow] = []
    for place, span in enumerate(ranges.spans):
        following = ranges.spans[place + 1] if place + 1 < len(ranges.spans) else None
        part = promising[:, :, span.first : span.last + 1]
        chosen = [span.choice] * part.shape[2]
        rows.append(
            PolicyRow(
                least=rows[-1].most + 1 if rows else asked.sizes[0],
                most=asked.sizes[-1] if following is None else _end(asked, span, following, choosing.mean(axis=0)),
                measured_least=asked.sizes[span.first],
                measured_most=asked.sizes[span.last],
                choice=asked.choices[span.choice],
                gain_over_default=_promised(part, chosen, ranges.default),
                gain_over_worst=_promised(part, chosen, ranges.worst),
            )
        )
    return tuple(rows)


def _promised(grid: Floats, chosen: list[int], other: int) -> Gain:
    """Return what the choice at each size gains over one other choice."""
    if all(each == other for each in chosen):
        return NO_GAIN
    places = range(grid.shape[2])
    return gain_of_grid(grid[:, other, :] - grid[:, chosen, places])


def _end(asked: PolicyQuestion, left: Span, right: Span, times: Floats) -> int:
    sizes = (asked.sizes[left.last], asked.sizes[right.first])
    lead = [float(times[right.choice, place] - times[left.choice, place]) for place in (left.last, right.first)]
    return last_size(sizes, (lead[0], lead[1]))


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
