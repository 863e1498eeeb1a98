"""Which graph of a trace is looked at."""

from __future__ import annotations

import numpy as np

from perfsuite.errors import PerfsuiteError
from perfsuite.records.engine_trace import EngineTrace, EventKind
from perfsuite.trace.statistics.operator_runs import OperatorRuns
from perfsuite.trace.statistics.traced_operators import n_tokens_of
from perfsuite.units import format_count

#: What can be asked for beside a number.
DECODE, PREFILL = "decode", "prefill"


def choose_graph(trace: EngineTrace, runs: OperatorRuns, wanted: str | int | None = None) -> int:
    """Return the graph that was evaluated the most often: of one token, of several, or of any.

    ``decode``, ``prefill``, or a graph's number may be wanted; None is ``decode`` where there is one, any otherwise.

    Raises
    ------
    PerfsuiteError
        There is no such graph, with those that there are.
    """
    counts = evaluation_counts(trace, runs)
    candidates = [number for number, graph in enumerate(trace.graphs) if graph]
    if wanted is None:
        chosen = [each for each in candidates if _phase(trace, each) == DECODE and counts[each]] or candidates
    elif wanted in (DECODE, PREFILL):
        chosen = [each for each in candidates if _phase(trace, each) == wanted]
    else:
        chosen = [each for each in candidates if str(each) == str(wanted)]
    if not chosen:
        asked = "graph" if wanted is None else f"graph {wanted!r}"
        raise PerfsuiteError(f"{asked}: {_there_are(trace, counts)}")
    return max(chosen, key=lambda each: (counts[each], -each))


def evaluation_counts(trace: EngineTrace, runs: OperatorRuns) -> list[int]:
    """Return for each graph how often it was evaluated: by its operators, or where none is recorded by its events."""
    pairs = np.unique(np.stack([runs.graph, runs.evaluation]), axis=1)[0]
    if not len(pairs):
        pairs = trace.of(EventKind.GRAPH)["graph"].astype(np.int64)
    return [int(np.count_nonzero(pairs == number)) for number in range(len(trace.graphs))]


def _phase(trace: EngineTrace, number: int) -> str | None:
    n_tokens = n_tokens_of(trace.graphs[number])
    return None if n_tokens is None else DECODE if n_tokens == 1 else PREFILL


def _there_are(trace: EngineTrace, counts: list[int]) -> str:
    if not trace.graphs:
        return "the trace has none; record it with the level 'operator'"
    told = (
        f"{number} ({_phase(trace, number) or 'no product of matrices'}, {format_count(len(graph), 'operator')}, "
        f"{format_count(counts[number], 'evaluation')})"
        for number, graph in enumerate(trace.graphs[:8])
    )
    more = f" and {len(trace.graphs) - 8} more" if len(trace.graphs) > 8 else ""
    return f"the trace has {', '.join(told)}{more}; accepted are decode, prefill, or a number"
