"""The steps of a trace: calls of llama_decode with their tokens, their time, and how much context they saw.

No recorder shows when the cache is emptied, so the context is counted: tokens of all steps since it last began anew.
It began anew where

* attention works on fewer positions than the count would need, or
* a prompt follows a step of decoding, and attention works on no more positions than that prompt alone needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Ints
from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable

#: The engine pads the positions that attention works on to a multiple of this.
KV_PADDING = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps in the order of time; arrays of one length."""

    #: The number that the trace's events have, ascending.
    number: Ints
    n_tokens: Ints
    #: Positions in the cache once the step is in it.
    context: Ints
    duration_ns: Ints

    @property
    def is_decode(self) -> Ints:
        """Positions of the steps of one token."""
        return np.flatnonzero(self.n_tokens == 1)


def steps_of(trace: EngineTrace, runs: OperatorRuns, table: OperatorTable) -> Steps:
    """Return the steps of a trace: calls of llama_decode, or evaluations where no call was recorded."""
    number, n_tokens, duration_ns = _called(trace) or _evaluated(runs, table)
    n_positions = _positions(number, runs, table)
    return Steps(number=number, n_tokens=n_tokens, context=_contexts(n_tokens, n_positions), duration_ns=duration_ns)


def _called(trace: EngineTrace) -> tuple[Ints, Ints, Ints] | None:
    events = trace.events
    at = np.flatnonzero((events["kind"] == EventKind.TOKEN) & (events["end_ns"] != NOTHING))
    if not at.size or (events["iteration"][at] == NOTHING).any():
        return None
    number, first = np.unique(events["iteration"][at].astype(np.int64), return_index=True)
    at = at[first]
    return number, events["value"][at], events["end_ns"][at] - events["start_ns"][at]


def _evaluated(runs: OperatorRuns, table: OperatorTable) -> tuple[Ints, Ints, Ints]:
    number, first, where = np.unique(runs.step, return_index=True, return_inverse=True)
    start_ns, end_ns = np.full(number.size, np.iinfo(np.int64).max), np.zeros(number.size, dtype=np.int64)
    np.minimum.at(start_ns, where, runs.start_ns)
    np.maximum.at(end_ns, where, runs.end_ns)
    known = np.array([0 if each is None else each for each in table.n_tokens], dtype=np.int64)
    return number, known[runs.graph[first]] if number.size else number, end_ns - start_ns


def _positions(number: Ints, runs: OperatorRuns, table: OperatorTable) -> Ints:
    """Return the positions that attention works on in each step; 0 where they are not known."""
    known = np.array([0 if each is None else each for each in table.n_positions], dtype=np.int64)
    found = np.zeros(number.size, dtype=np.int64)
    if number.size and len(runs):
        at = np.searchsorted(number, runs.step)
        is_there = (at < number.size) & (number[np.minimum(at, number.size - 1)] == runs.step)
        np.maximum.at(found, at[is_there], known[runs.graph[is_there]])
    return found


def _contexts(n_tokens: Ints, n_positions: Ints) -> Ints:
    context, contexts, before = 0, [], 0
    for added, visible in zip(n_tokens.tolist(), n_positions.tolist(), strict=True):
        is_too_many = 0 < visible < context + added
        is_prompt = added > 1 and before == 1 and visible <= max(KV_PADDING, -(-added // KV_PADDING) * KV_PADDING)
        context = added if is_too_many or is_prompt else context + added
        contexts.append(context)
        before = added
    return np.array(contexts, dtype=np.int64)
