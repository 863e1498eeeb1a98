"""Which operators of a trace are the products with experts, by step and layer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable

_OP = "MUL_MAT_ID"


def expert_products(runs: OperatorRuns, table: OperatorTable) -> Iterator[tuple[int, int, int]]:
    """Yield the position among the runs, the step and the layer of each product with experts that has a layer."""
    rows = table.rows_of(runs)
    wanted = [row for row in np.unique(rows).tolist() if table.operators[row].op == _OP]
    for at in np.flatnonzero(np.isin(rows, wanted)).tolist():
        layer = table.operators[int(rows[at])].layer
        if layer is not None:
            yield at, int(runs.step[at]), layer
