"""Ranges of sizes with one choice each: as few as the noise allows to be told apart.

At each size a choice is acceptable if it is not slower than the fastest by more than noise: with m_c the mean over P
processes of the logarithm of its time, and s the residual deviation of times that processes and choices do not explain,

    m_c - m_best <= max(t sqrt(2 / P) s, log 1.02)

t being Student's quantile at 5 % over all comparisons of the grid. s^2 is the mean over the size and the two on either
side of it, for noise is alike at neighbouring sizes, and that of few processes alone is hardly known. A range goes on
for as long as one choice is acceptable at all of its sizes, which gives the fewest ranges there are. One size that
disagrees with both of its neighbours ends none. Among the choices that are acceptable throughout a range the default is
taken, else the fastest; the end of a range then moves to where the sum of times is least.

*Source*: Scheffé, The Analysis of Variance, 1959, section 4.2: contrasts of a two-way layout, one observation a cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfsuite.experiments.shapes.policy_promise import Floats

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
