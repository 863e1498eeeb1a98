"""What a table promises: the gain of each row over its range, and that of the whole table at its measured sizes.

Sizes that stand for a row where its gain is promised, and where it is checked: drawn from its whole range.

The range is parted into strata that are even on a logarithmic axis, one size is drawn from each, and the gain of a row
is the mean over its strata. A promise and a check part a range alike and draw for themselves: they are two estimates of
one quantity. Sizes that the choice was fitted to are drawn only where a stratum has no others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfsuite.experiments.shapes.policy_question import PolicyQuestion
from perfsuite.experiments.shapes.policy_record import NO_GAIN, Choice, Gain, PolicyRow, PolicyTable
from perfsuite.workload.shapes.shape_case import ShapeCase

Floats = NDArray[np.float64]

#: Two-sided, of a gain's interval.
CONFIDENCE = 0.95


def gain_of_range(log_gains: Floats, *, n_drawn: int) -> Gain:
    """Return the geometric mean of the gains over a range, from sizes of which each was drawn from its stratum.

    Beside processes also sizes vary, within their strata. With g_i the mean over processes at the size of stratum i, of
    S, D of which have other sizes as well,

        v = s_p^2 / P + D / S^2 d^2 / 2,    d^2 = mean of (g_(i+1) - g_i)^2

    for neighbours differ by what varies within strata and, at most, by more: a trend over the range makes the interval
    no narrower. Degrees of freedom are v^2 / (a^2 / (P - 1) + b^2 / f), a and b being the two terms, and those of d^2,

        f = 2 (S - 1)^2 / (3 S - 4)

    *Source*: von Neumann et al., The mean square successive difference, Ann. Math. Statist. 12, 1941; Satterthwaite, An
    approximate distribution of estimates of variance components, 1946.

    Parameters
    ----------
    log_gains
        log(time of the other / time of the choice); shape (processes, sizes), sizes ascending, 2 processes or more.
    n_drawn
        D. Without any, the range holds no sizes but those that were measured: processes alone vary, for all rounds of
        one share its buffers, and the interval is Student's with P - 1 degrees of freedom.
    """
    n_processes, n_sizes = log_gains.shape
    of_processes = float(log_gains.mean(axis=1).var(ddof=1)) / n_processes
    of_sizes, spread = 0.0, of_processes**2 / (n_processes - 1)
    if n_drawn and n_sizes > 1:
        steps = np.diff(log_gains.mean(axis=0))
        of_sizes = n_drawn / n_sizes**2 * float((steps**2).mean()) / 2.0
        spread += of_sizes**2 * (3 * n_sizes - 4) / (2.0 * (n_sizes - 1) ** 2)
    variance = of_processes + of_sizes
    from scipy.stats import t  # late, for its import takes longer than most commands

    freedom = variance**2 / spread if spread > 0 else 1.0
    mean, reach = float(log_gains.mean()), float(t.ppf(0.5 + CONFIDENCE / 2.0, freedom)) * math.sqrt(variance)
    return Gain(ratio=math.exp(mean), lower_ratio=_exp(mean - reach), upper_ratio=_exp(mean + reach))


def is_surely_below(measured: Gain, promised: Gain) -> bool:
    """Return whether a gain is below another one, by the interval of the difference of their logarithms.

    With differences m - p, and the reach of each interval towards the other gain, the upper end is
    m - p + sqrt((m_upper - m)^2 + (p - p_lower)^2).

    *Source*: Zou and Donner, Construction of confidence limits about effect measures, Statist. Med. 27, 2008.
    """
    above = math.log(measured.upper_ratio) - math.log(measured.ratio)
    below = math.log(promised.ratio) - math.log(promised.lower_ratio)
    return math.log(measured.ratio) - math.log(promised.ratio) + math.hypot(above, below) < 0.0


def _exp(logarithm: float) -> float:
    return math.exp(min(max(logarithm, -300.0), 300.0))


#: Strata of a row, as far as its range has so many sizes.
MOST_SIZES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSizes:
    """One size of each stratum of a row."""

    #: Ascending.
    sizes: tuple[int, ...]
    #: Strata that have other sizes as well; a row with none is measured at all of its sizes.
    n_drawn: int
    #: Those of the sizes that the choice was fitted to.
    fitted_sizes: tuple[int, ...]


def drawn_sizes(row: PolicyRow, fitted: Collection[int], *, draw: random.Random, step: int = 1) -> DrawnSizes:
    """Draw the sizes of a row, in whole multiples of `step`; `fitted` are those that the table was made from."""
    strata = _strata(row, step)
    open_to = [[size for size in stratum if size not in fitted] or list(stratum) for stratum in strata]
    sizes = tuple(draw.choice(stratum) for stratum in open_to)
    return DrawnSizes(
        sizes=sizes,
        n_drawn=sum(len(stratum) > 1 for stratum in open_to),
        fitted_sizes=tuple(size for size in sizes if size in fitted),
    )


def _strata(row: PolicyRow, step: int) -> list[range]:
    """Part a range; the first sizes, which are far apart on a logarithmic axis, have strata of their own."""
    blocks = range(-(-row.least // step), row.most // step + 1)
    found = []
    for n_left in range(min(MOST_SIZES, len(blocks)), 0, -1):
        until = round(blocks[0] * ((blocks[-1] + 1) / blocks[0]) ** (1.0 / n_left))
        n_taken = min(max(1, until - blocks[0]), len(blocks) - n_left + 1)
        found.append(range(blocks[0] * step, blocks[n_taken - 1] * step + 1, step))
        blocks = blocks[n_taken:]
    return found


#: A choice, and what it is held against at the same size.
Pair = tuple[ShapeCase, ShapeCase]


def pairs_at(question: PolicyQuestion, choice: Choice, over: Choice, sizes: Iterable[int]) -> tuple[Pair, ...]:
    """Return a choice and what it is compared with, at each size."""
    return tuple((question.case(choice, size), question.case(over, size)) for size in sizes)


def gain_of_pairs(log_ns: Mapping[ShapeCase, Floats], pairs: Sequence[Pair], *, n_drawn: int) -> Gain:
    """Return the gain of one pair or more, from times by case and process; `n_drawn` as `gain_of_range` takes it."""
    return gain_of_range(np.stack([log_ns[over] - log_ns[choice] for choice, over in pairs], axis=1), n_drawn=n_drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisePlan:
    """A table without promises, and where they are measured."""

    table: PolicyTable
    question: PolicyQuestion
    drawn: Mapping[PolicyRow, DrawnSizes]

    @classmethod
    def of(cls, table: PolicyTable, question: PolicyQuestion, *, seed: int) -> PromisePlan:
        draw = random.Random(f"promise/{seed}")
        drawn = {row: drawn_sizes(row, table.measured_sizes, draw=draw, step=question.step) for row in table.rows}
        return cls(table=table, question=question, drawn=drawn)

    @property
    def cases(self) -> tuple[ShapeCase, ...]:
        """What is measured, each case once; nothing where there is one choice only."""
        table = self.table
        sides = [self._pairs(over, row) for over in (table.default, table.worst) for row in (None, *table.rows)]
        return tuple(dict.fromkeys(case for pairs in sides for pair in pairs for case in pair))

    def promising(self, log_ns: Mapping[ShapeCase, Floats]) -> PolicyTable:
        """Return the table with what it promises, from times by case and process."""
        rows = []
        for row in self.table.rows:
            default, worst = self._gains(log_ns, row)
            rows.append(replace(row, gain_over_default=default, gain_over_worst=worst))
        default, worst = self._gains(log_ns, None)
        return replace(self.table, rows=tuple(rows), gain_over_default=default, gain_over_worst=worst)

    def _gains(self, log_ns: Mapping[ShapeCase, Floats], row: PolicyRow | None) -> Iterator[Gain]:
        n_drawn = 0 if row is None else self.drawn[row].n_drawn
        for over in (self.table.default, self.table.worst):
            pairs = self._pairs(over, row)
            yield gain_of_pairs(log_ns, pairs, n_drawn=n_drawn) if pairs else NO_GAIN

    def _pairs(self, over: Choice, row: PolicyRow | None) -> tuple[Pair, ...]:
        """Return pairs at a row's drawn sizes, or at all measured ones; none where the other choice is taken anyway."""
        rows = self.table.rows if row is None else (row,)
        if all(each.choice == over for each in rows):
            return ()
        at = {row: self.drawn[row].sizes} if row else {each: self._measured_sizes(each) for each in rows}
        return tuple(pair for each in rows for pair in pairs_at(self.question, each.choice, over, at[each]))

    def _measured_sizes(self, row: PolicyRow) -> tuple[int, ...]:
        return tuple(size for size in self.table.measured_sizes if row.least <= size <= row.most)
