"""Time across tokens: how a step of decoding grows with the context, and which operators carry that growth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Ints
from perfsuite.trace.robust_line import RobustLine, robust_line
from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable
from perfsuite.trace.statistics.step_contexts import Steps

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
    is_there = (at < numbers.size) & (numbers[np.minimum(at, max(0, numbers.size - 1))] == runs.step)
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
