"""What a table promises: the gain of each row over its range, and that of the whole table at its measured sizes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfsuite.experiments.shapes.policy_drawn_sizes import DrawnSizes, drawn_sizes
from perfsuite.experiments.shapes.policy_gain import Floats, gain_of_range
from perfsuite.experiments.shapes.policy_question import PolicyQuestion
from perfsuite.experiments.shapes.policy_record import NO_GAIN, Choice, Gain, PolicyRow, PolicyTable
from perfsuite.workload.shapes.shape_case import ShapeCase

#: A choice, and what it is held against at the same size.
Pair = tuple[ShapeCase, ShapeCase]


def pairs_at(question: PolicyQuestion, choice: Choice, over: Choice, sizes: Iterable[int]) -> tuple[Pair, ...]:
    """Return a choice and what it is held against, at each size."""
    return tuple((question.case(choice, size), question.case(over, size)) for size in sizes)


def gain_of_pairs(log_ns: Mapping[ShapeCase, Floats], pairs: Sequence[Pair], *, n_drawn: int) -> Gain:
    """Return the gain of one pair or more, from times by case and process; `n_drawn` as `gain_of_range` takes it."""
    return gain_of_range(np.stack([log_ns[over] - log_ns[choice] for choice, over in pairs], axis=1), n_drawn=n_drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisePlan:
    """A table without promises, and where they are measured."""

    table: PolicyTable
    question: PolicyQuestion
    #: By row.
    drawn: tuple[DrawnSizes, ...]

    @classmethod
    def of(cls, table: PolicyTable, question: PolicyQuestion, *, seed: int) -> PromisePlan:
        """Draw the sizes of each row."""
        draw = random.Random(f"promise/{seed}")
        drawn = (drawn_sizes(row, table.measured_sizes, draw=draw, step=question.step) for row in table.rows)
        return cls(table=table, question=question, drawn=tuple(drawn))

    @property
    def cases(self) -> tuple[ShapeCase, ...]:
        """What is measured, each case once; nothing where there is one choice only."""
        return tuple(dict.fromkeys(case for pairs in self._all_pairs() for pair in pairs for case in pair))

    def promising(self, log_ns: Mapping[ShapeCase, Floats]) -> PolicyTable:
        """Return the table with what it promises, from times by case and process."""
        table = self.table
        rows = (
            replace(
                row,
                gain_over_default=self._row_gain(log_ns, row, drawn, table.default),
                gain_over_worst=self._row_gain(log_ns, row, drawn, table.worst),
            )
            for row, drawn in zip(table.rows, self.drawn, strict=True)
        )
        return replace(
            table,
            rows=tuple(rows),
            gain_over_default=self._table_gain(log_ns, table.default),
            gain_over_worst=self._table_gain(log_ns, table.worst),
        )

    def _all_pairs(self) -> Iterator[tuple[Pair, ...]]:
        for over in (self.table.default, self.table.worst):
            yield self._table_pairs(over)
            for row, drawn in zip(self.table.rows, self.drawn, strict=True):
                yield self._row_pairs(row, drawn, over)

    def _row_pairs(self, row: PolicyRow, drawn: DrawnSizes, over: Choice) -> tuple[Pair, ...]:
        return () if row.choice == over else pairs_at(self.question, row.choice, over, drawn.sizes)

    def _table_pairs(self, over: Choice) -> tuple[Pair, ...]:
        """Return pairs at all measured sizes; none where the table says the other choice throughout."""
        rows = self.table.rows
        if all(row.choice == over for row in rows):
            return ()
        sizes = {row: [size for size in self.table.measured_sizes if row.least <= size <= row.most] for row in rows}
        return tuple(pair for row in rows for pair in pairs_at(self.question, row.choice, over, sizes[row]))

    def _row_gain(self, log_ns: Mapping[ShapeCase, Floats], row: PolicyRow, drawn: DrawnSizes, over: Choice) -> Gain:
        pairs = self._row_pairs(row, drawn, over)
        return gain_of_pairs(log_ns, pairs, n_drawn=drawn.n_drawn) if pairs else NO_GAIN

    def _table_gain(self, log_ns: Mapping[ShapeCase, Floats], over: Choice) -> Gain:
        pairs = self._table_pairs(over)
        return gain_of_pairs(log_ns, pairs, n_drawn=0) if pairs else NO_GAIN
