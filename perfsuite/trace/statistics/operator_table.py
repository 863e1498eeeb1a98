"""The operators of all graphs of a trace in one table, by which runs find their role and their dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from perfsuite.records.engine_trace import EngineTrace, Ints
from perfsuite.records.events import Phase
from perfsuite.trace.operators import RecordedOperator
from perfsuite.trace.statistics.operator_runs import OperatorRuns
from perfsuite.trace.statistics.traced_operators import n_positions_of, n_tokens_of, traced_operators

_Label = TypeVar("_Label")

#: By whether a run is of a step of decoding.
_PHASES = (Phase.PREFILL, Phase.DECODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTable:
    """The operators of all graphs, one graph behind the other."""

    operators: tuple[RecordedOperator, ...]
    #: Row of the first operator of each graph.
    first_rows: Ints
    #: By graph; None where it is not known.
    n_tokens: tuple[int | None, ...]
    n_positions: tuple[int | None, ...]

    def rows_of(self, runs: OperatorRuns) -> Ints:
        """Return the row of each run."""
        rows: Ints = self.first_rows[runs.graph] + runs.node
        return rows

    def labelled(
        self, runs: OperatorRuns, label: Callable[[RecordedOperator, Phase], _Label]
    ) -> tuple[tuple[_Label, ...], Ints]:
        """Give each run the label of its operator and phase; return the labels, and each run's position in them."""
        keys, where = np.unique(self.rows_of(runs) * 2 + runs.is_decode, return_inverse=True)
        places: dict[_Label, int] = {}
        found = [label(self.operators[key // 2], _PHASES[key % 2]) for key in keys.tolist()]
        of_key = np.array([places.setdefault(each, len(places)) for each in found], dtype=np.int64)
        return tuple(places), of_key[where]


def operator_table(trace: EngineTrace) -> OperatorTable:
    """Name the operators of a trace's graphs."""
    graphs = [traced_operators(graph) for graph in trace.graphs]
    sizes = np.array([0, *(len(graph) for graph in graphs)], dtype=np.int64)
    return OperatorTable(
        operators=tuple(operator for graph in graphs for operator in graph),
        first_rows=np.cumsum(sizes)[:-1],
        n_tokens=tuple(map(n_tokens_of, trace.graphs)),
        n_positions=tuple(map(n_positions_of, trace.graphs)),
    )
