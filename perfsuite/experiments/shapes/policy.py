"""Measures a policy: the choice by size, and what it promises.

Choosing the fastest of many prefers those that noise has favoured, and on the same samples their gain would look larger
than it is. So the processes are parted: one half chooses, at the sizes that were asked for, and the promise is what the
choice gains in the others, which had no part in it, at sizes that are drawn from the range of each row.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_promise import cases_of, promising, row_claims, table_claims
from perfsuite.experiments.shapes.policy_question import PolicyQuestion
from perfsuite.experiments.shapes.policy_record import (
    NO_GAIN,
    Choice,
    LeftOut,
    MeasuredSubject,
    PolicyRow,
    PolicyTable,
)
from perfsuite.experiments.shapes.policy_rounds import (
    Floats,
    Progress,
    RoundDesign,
    SubjectMeters,
    described_subject,
    fault,
    faults,
    fresh_meters,
    measure_rounds,
    no_progress,
)
from perfsuite.workload.shapes.shape_case import ShapeCase

#: The chance that noise alone makes another row, over all comparisons of a grid.
ALPHA = 0.05

#: Sizes on either side whose noise is taken along.
_NEIGHBOURS = 2

#: What a change of choice must save to be worth a row.
LEAST_GAIN_RATIO = 1.02

_Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Places of sizes, both ends within it, and the place of the choice."""

    first: int
    last: int
    choice: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """What is chosen where, by places in the grid."""

    #: The best and the worst choice, if it has to be one for all sizes.
    default: int
    worst: int
    spans: tuple[Span, ...]


def choose_ranges(log_ns: Floats) -> Ranges:
    """Choose from the logarithms of times; shape (processes, choices, sizes)."""
    times = log_ns.mean(axis=0)
    totals = times.mean(axis=1)
    default, worst = int(totals.argmin()), int(totals.argmax())
    accepted = acceptable(log_ns)
    spans = []
    for first, last, held in _fewest_spans(accepted):
        costs = np.where(held, times[:, first : last + 1].mean(axis=1), np.inf)
        spans.append(Span(first=first, last=last, choice=default if held[default] else int(costs.argmin())))
    return Ranges(default=default, worst=worst, spans=_with_best_ends(spans, times))


def acceptable(log_ns: Floats) -> _Mask:
    """Return which choice is not slower than the fastest by more than noise, by size; shape (choices, sizes)."""
    n_processes, n_choices, n_sizes = log_ns.shape
    if n_choices == 1:
        return np.ones((1, n_sizes), dtype=np.bool_)
    from scipy.stats import t  # late, for its import takes longer than most commands

    means = log_ns.mean(axis=0)
    residuals = log_ns - means - log_ns.mean(axis=1, keepdims=True) + log_ns.mean(axis=(0, 1))
    freedom = (n_processes - 1) * (n_choices - 1) * _summed(np.ones(n_sizes))
    deviation = np.sqrt(_summed((residuals**2).sum(axis=(0, 1))) / freedom)
    quantile = t.ppf(1.0 - ALPHA / (n_sizes * (n_choices - 1)), freedom)
    bound = np.maximum(quantile * math.sqrt(2.0 / n_processes) * deviation, math.log(LEAST_GAIN_RATIO))
    return np.asarray(means - means.min(axis=0) <= bound, dtype=np.bool_)


def _summed(values: Floats) -> Floats:
    """Return the sum of each value with its neighbours, of which the first and the last have fewer."""
    return np.convolve(values, np.ones(2 * _NEIGHBOURS + 1))[_NEIGHBOURS : _NEIGHBOURS + len(values)]


def _fewest_spans(accepted: _Mask) -> list[tuple[int, int, _Mask]]:
    n_sizes = accepted.shape[1]
    spans, first, held = [], 0, accepted[:, 0]
    for place in range(1, n_sizes):
        here = held & accepted[:, place]
        if here.any():
            held = here
        elif place + 1 < n_sizes and (held & accepted[:, place + 1]).any():
            continue
        else:
            spans.append((first, place - 1, held))
            first, held = place, accepted[:, place]
    return [*spans, (first, n_sizes - 1, held)]


def _with_best_ends(spans: Sequence[Span], times: Floats) -> tuple[Span, ...]:
    found = list(spans)
    for place in range(len(found) - 1):
        left, right = found[place], found[place + 1]
        last = min(range(left.first, right.last), key=lambda end: _cost(left, right, end, times))
        found[place], found[place + 1] = replace(left, last=last), replace(right, first=last + 1)
    return tuple(found)


def _cost(left: Span, right: Span, last: int, times: Floats) -> float:
    return float(times[left.choice, left.first : last + 1].sum() + times[right.choice, last + 1 : right.last + 1].sum())


def measure_policy(
    question: PolicyQuestion,
    meters: SubjectMeters,
    *,
    design: RoundDesign,
    seed: int = 0,
    progress: Progress = no_progress,
) -> tuple[PolicyTable, tuple[MeasuredSubject, ...]]:
    """Measure every choice at every size, choose, and measure what that gains; return also on what it was measured.

    Half of the processes choose, and half promise. Raises PolicyError: no choice is left; PerfsuiteError: a subject
    cannot run, or a process died.
    """
    half = replace(design, n_processes=design.n_processes // 2)
    n_half = half.n_processes * (design.n_rounds + 1)
    found = vetted(question, meters)
    cases = [found.question.case(choice, size) for choice in found.question.choices for size in question.sizes]
    log_ns = measure_rounds(meters, cases, design=half, seed=seed, progress=lambda done, _: progress(done, 2 * n_half))
    while True:
        table, asked = _table(found, log_ns), found.question
        draw = random.Random(f"promise/{seed}")
        claims = (*table_claims(table, asked), *row_claims(table, asked, draw))
        reasons = faults(meters, cases_of(claims))
        lost = [(case, reason) for case, reason in reasons.items() if reason is not None]
        if not lost:
            break
        # choose anew without what cannot be computed, or is wrong, at a size that is drawn for a promise
        (case, reason), size = lost[0], lost[0][0].shape.of(asked.dimension)
        found = found.without(next(each for each in asked.choices if asked.case(each, size) == case), reason)
    promised_ns = measure_rounds(
        meters,
        tuple(reasons),
        design=half,
        seed=seed + 1,
        progress=lambda done, _: progress(n_half + done, 2 * n_half),
    )
    if not claims:
        progress(2 * n_half, 2 * n_half)
    return promising(table, claims, promised_ns), found.subjects


@dataclass(frozen=True, slots=True, kw_only=True)
class Vetted:
    """A question whose every case is computed, and correctly."""

    question: PolicyQuestion
    left_out: tuple[LeftOut, ...]
    subjects: tuple[MeasuredSubject, ...]

    def without(self, choice: Choice, reason: str) -> Vetted:
        """Leave one more choice out; `PolicyError` where it is the last."""
        left_out = (*self.left_out, LeftOut(choice=choice, reason=reason))
        kept = tuple(each for each in self.question.choices if each != choice)
        if not kept:
            first = left_out[0]
            raise PolicyError(f"{self.question.decides.value}: no choice is left; {first.choice}: {first.reason}")
        return replace(self, question=replace(self.question, choices=kept), left_out=left_out)


def vetted(question: PolicyQuestion, meters: SubjectMeters) -> Vetted:
    """Run every case once and compare its output with NumPy's, in processes of their own.

    Raises PolicyError: no choice is left; PerfsuiteError: a subject cannot run at all.
    """
    with fresh_meters(meters, (choice.subject for choice in question.choices)) as opened:
        subjects = tuple(described_subject(subject, meter) for subject, meter in opened.items())
        found = Vetted(question=question, left_out=(), subjects=subjects)
        for choice in question.choices:
            reasons = (fault(opened[choice.subject], question.case(choice, size)) for size in question.sizes)
            if reason := next((each for each in reasons if each is not None), None):
                found = found.without(choice, reason)
    return found


def _table(found: Vetted, log_ns: Mapping[ShapeCase, Floats]) -> PolicyTable:
    asked, shape = found.question, found.question.shape
    rows = [[log_ns[asked.case(choice, size)] for size in asked.sizes] for choice in asked.choices]
    grid = np.moveaxis(np.array(rows), 2, 0)
    ranges = choose_ranges(grid)
    return PolicyTable(
        decides=asked.decides,
        operation=shape.operation.value,
        type=shape.type,
        dimension=asked.dimension,
        fixed={name: shape.of(name) for name in shape.operation.dimensions if name != asked.dimension},
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
