"""What a table promises: the gain of each row over its range, and that of the whole table at its measured sizes.

Sizes that stand for a row where its gain is promised, and where it is checked: drawn from its whole range.

The range is parted into strata that are even on a logarithmic axis, one size is drawn from each, and the gain of a row
is the mean over its strata. A promise and a check part a range alike and draw for themselves: they are two estimates of
one quantity. Sizes that the choice was fitted to are drawn only where a stratum has no others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfsuite.experiments.shapes.policy_question import PolicyQuestion
from perfsuite.experiments.shapes.policy_record import NO_GAIN, Choice, Gain, PolicyRow, PolicyTable
from perfsuite.experiments.shapes.policy_rounds import Floats
from perfsuite.workload.shapes.shape_case import ShapeCase

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the choices of a row, or of a whole table at its measured sizes, gain over one other choice."""

    #: None of a whole table.
    row: PolicyRow | None
    over: Choice
    #: As the table states it.
    promised: Gain
    drawn: DrawnSizes
    #: A choice, and what it is held against at the same size.
    pairs: tuple[tuple[ShapeCase, ShapeCase], ...]

    def measured(self, log_ns: Mapping[ShapeCase, Floats]) -> Gain:
        gains = np.stack([log_ns[over] - log_ns[choice] for choice, over in self.pairs], axis=1)
        return gain_of_range(gains, n_drawn=self.drawn.n_drawn)


def cases_of(claims: Iterable[Claim]) -> tuple[ShapeCase, ...]:
    """Return what is measured for claims, each case once."""
    return tuple(dict.fromkeys(case for claim in claims for pair in claim.pairs for case in pair))


def row_claims(table: PolicyTable, question: PolicyQuestion, draw: random.Random) -> tuple[Claim, ...]:
    """Return what the rows claim over other choices than their own, at sizes that are drawn for each row."""
    claims = []
    for row in table.rows:
        drawn = drawn_sizes(row, table.measured_sizes, draw=draw, step=question.step)
        gains = {table.worst: row.gain_over_worst, table.default: row.gain_over_default}
        for over in dict.fromkeys((table.default, table.worst)):
            if over != row.choice:
                pairs = tuple((question.case(row.choice, size), question.case(over, size)) for size in drawn.sizes)
                claims.append(Claim(row=row, over=over, promised=gains[over], drawn=drawn, pairs=pairs))
    return tuple(claims)


def table_claims(table: PolicyTable, question: PolicyQuestion) -> tuple[Claim, ...]:
    """Return what the whole table claims at its measured sizes over other choices than those of all rows."""
    sizes = table.measured_sizes
    chosen = {size: row.choice for size in sizes for row in table.rows if row.least <= size <= row.most}
    drawn = DrawnSizes(sizes=sizes, n_drawn=0, fitted_sizes=sizes)
    gains = {table.worst: table.gain_over_worst, table.default: table.gain_over_default}
    return tuple(
        Claim(
            row=None,
            over=over,
            promised=gains[over],
            drawn=drawn,
            pairs=tuple((question.case(choice, size), question.case(over, size)) for size, choice in chosen.items()),
        )
        for over in gains
        if any(row.choice != over for row in table.rows)
    )


def promising(table: PolicyTable, claims: Iterable[Claim], log_ns: Mapping[ShapeCase, Floats]) -> PolicyTable:
    """Return the table with what it promises, from times by case and process."""
    gains = {(claim.row, claim.over): claim.measured(log_ns) for claim in claims}

    def gained(row: PolicyRow | None, over: Choice) -> Gain:
        return gains.get((row, over), NO_GAIN)

    default, worst = table.default, table.worst
    rows = tuple(
        replace(row, gain_over_default=gained(row, default), gain_over_worst=gained(row, worst)) for row in table.rows
    )
    return replace(table, rows=rows, gain_over_default=gained(None, default), gain_over_worst=gained(None, worst))
