"""Time across tokens: how a step of decoding grows with the context, and which operators carry that growth.

The steps of a trace: calls of llama_decode with their tokens, their time, and how much context they saw.

No recorder shows when the cache is emptied, so the context is counted: tokens of all steps since it last began anew.
It began anew where

* attention works on fewer positions than the count would need, or
* a prompt follows a step of decoding, and attention works on no more positions than that prompt alone needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Ints
from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable
from perfsuite.trace.step_forecast import RobustLine, robust_line

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


#: Fewer contexts have no line.
LEAST_CONTEXTS = 4

_ATTENTION_ROLES = ("kq", "kq_soft_max", "kqv")


def is_attention(role: str, op: str) -> bool:
    """Whether an operator attends to the cache: its scores, their softmax, what is mixed by them, or all in one."""
    return op == "FLASH_ATTN_EXT" or role in _ATTENTION_ROLES


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrowth:
    """How the time of one role in a step of decoding, all layers together, moves with the context."""

    role: str
    op: str
    #: Of a step, median over the steps, ns.
    median_ns: float
    line: RobustLine
    #: The role's slope over that of all roles that grow; None where none does. A whole step has more noise than its
    #: operators, so its own slope is no measure.
    share_ratio: float | None

    @property
    def is_attention(self) -> bool:
        """Whether the role attends to the cache."""
        return is_attention(self.role, self.op)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStatistics:
    """Steps over the context."""

    steps: Steps
    #: Time of a step of decoding over its context, ns; None where there are fewer than `LEAST_CONTEXTS`.
    line: RobustLine | None
    #: By role, the steepest first; empty where there is no line.
    growth: tuple[RoleGrowth, ...]

    @property
    def growth_ns(self) -> float:
        """What all roles that grow take longer for each position."""
        return sum(max(0.0, each.line.slope_ns) for each in self.growth)

    @property
    def attention_share_ratio(self) -> float | None:
        """The part of the growth that attention carries; None where nothing grows."""
        found = [each.share_ratio for each in self.growth if each.is_attention and each.share_ratio is not None]
        return sum(found) if found else None


def token_statistics(steps: Steps, runs: OperatorRuns, table: OperatorTable) -> TokenStatistics:
    """Return the growth of decoding over the context."""
    decode = steps.is_decode
    line = context_line(steps.context[decode], steps.duration_ns[decode])
    growth = () if line is None else _growth(steps, runs, table)
    steepest_first = sorted(growth, key=lambda each: (-each.line.slope_ns, each.role))
    return TokenStatistics(steps=steps, line=line, growth=tuple(steepest_first))


def context_line(contexts: Ints, times_ns: npt.NDArray[np.generic]) -> RobustLine | None:
    """Fit time over context, the median of each context; None where there are fewer than `LEAST_CONTEXTS`."""
    found, where = np.unique(contexts, return_inverse=True)
    if found.size < LEAST_CONTEXTS:
        return None
    order = np.argsort(where, kind="stable")
    parts = np.split(times_ns[order], np.cumsum(np.bincount(where))[:-1])
    return robust_line(found.tolist(), [round(float(np.median(part))) for part in parts])


def role_times(steps: Steps, runs: OperatorRuns, table: OperatorTable) -> tuple[tuple[tuple[str, str], ...], Ints]:
    """Return (role, op) pairs, and the time of each in each step of decoding: shape (pairs, steps), ns."""
    decode = steps.is_decode
    labels, of_run = table.labelled(runs, lambda operator, _: (operator.role, operator.op))
    numbers = steps.number[decode]
    at = np.searchsorted(numbers, runs.step)
    is_there = np.isin(runs.step, numbers)
    cells = of_run[is_there] * numbers.size + at[is_there]
    totals = np.bincount(cells, weights=runs.duration_ns[is_there], minlength=len(labels) * numbers.size)
    return labels, totals.reshape(len(labels), numbers.size).round().astype(np.int64)


def _growth(steps: Steps, runs: OperatorRuns, table: OperatorTable) -> tuple[RoleGrowth, ...]:
    contexts = steps.context[steps.is_decode]
    found = [
        (pair, times_ns, context_line(contexts, times_ns))
        for pair, times_ns in zip(*role_times(steps, runs, table), strict=True)
        if times_ns.any()
    ]
    total = sum(max(0.0, line.slope_ns) for *_, line in found if line is not None)
    return tuple(
        RoleGrowth(
            role=role,
            op=op,
            median_ns=float(np.median(times_ns)),
            line=line,
            share_ratio=max(0.0, line.slope_ns) / total if total > 0 else None,
        )
        for (role, op), times_ns, line in found
        if line is not None
    )
