"""Time by type of operator and dimensions: a line through it, the rates that it reaches, and what was counted.

The dimensions M x N x K x H by which the time of an operator is reported.

    product of matrices     M rows of the weights, N columns, K elements of a row, H matrices (heads)
    product with experts    M rows of an expert, N rows of activations (tokens x experts of a token), K, H = 1
    fused attention         M positions, N queries, K elements of a head, H heads
    softmax of scores       M positions, N queries, K = 1, H heads
    all others              M x N x H elements of the output, K = 1

*Source*: the dimensions by which ProfInfer's ProfStat plots an operator's time, M x N x K x H.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from perfsuite.records.engine_trace import NOTHING, Ints
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import OpCost
from perfsuite.trace.operators import RecordedOperator
from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable


@dataclass(frozen=True, slots=True, order=True)
class Dimensions:
    """M x N x K x H of one operator."""

    m: int
    n: int
    k: int
    h: int

    @property
    def work(self) -> int:
        """Return M N K H: multiply-accumulates of a product, elements of most others."""
        return self.m * self.n * self.k * self.h

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}x{self.h}"


def dimensions_of(operator: RecordedOperator) -> Dimensions:
    """Return the dimensions of an operator."""
    output, sources = operator.node.tensor.ne, operator.node.sources
    if operator.op == "MUL_MAT" and sources:
        return Dimensions(output[0], output[1], sources[0].ne[0], output[2] * output[3])
    if operator.op == "MUL_MAT_ID" and sources:
        return Dimensions(output[0], prod(output[1:]), sources[0].ne[0], 1)
    if operator.op == "FLASH_ATTN_EXT" and len(sources) > 1:
        query, key = sources[0].ne, sources[1].ne
        return Dimensions(key[1], query[1], query[0], query[2] * query[3])
    return Dimensions(output[0], output[1], 1, output[2] * output[3])


def stored_type(operator: RecordedOperator) -> str:
    """Return the type of what an operator mostly reads: the weights, or the keys of fused attention."""
    place = 1 if operator.op == "FLASH_ATTN_EXT" else 0
    sources = operator.node.sources
    return (sources[place] if len(sources) > place else operator.node.tensor).type.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFit:
    """``y = intercept + slope * x`` of least squares."""

    n_points: int
    slope: float
    intercept: float
    #: 1 - residual / total sum of squares; None where all y are the same.
    r_squared: float | None
    #: Root of the mean square of the distances, in the unit of y.
    residual: float
    #: For each point, ``y / line - 1``; None where the line is at 0 or below.
    deviations_ratio: tuple[float | None, ...]

    def at(self, x: float) -> float:
        return self.intercept + self.slope * x


def fit_line(x: Sequence[float], y: Sequence[float], *, is_relative: bool = False) -> LineFit | None:
    """Fit a line; None where there are fewer than 3 points, or fewer than 2 different x.

    Two points lie on their line whatever they are, so they show nothing.

    Where `is_relative`, distances are counted in parts of y, so that small ones count as much as large ones.
    """
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if across.size < 3 or np.unique(across).size < 2:
        return None
    weights = 1.0 / np.maximum(up, np.finfo(np.float64).tiny) if is_relative else np.ones_like(up)
    scale = float(np.abs(across).max()) or 1.0
    columns = np.stack([across / scale, np.ones_like(across)], axis=1) * weights[:, None]
    (slope, intercept), *_ = np.linalg.lstsq(columns, up * weights, rcond=None)
    line = intercept + slope / scale * across
    squares, total = float(((up - line) ** 2).sum()), float(((up - up.mean()) ** 2).sum())
    return LineFit(
        n_points=int(across.size),
        slope=float(slope / scale),
        intercept=float(intercept),
        r_squared=1.0 - squares / total if total > 0.0 else None,
        residual=float(np.sqrt(squares / across.size)),
        deviations_ratio=tuple(
            float(each / on_line - 1.0) if on_line > 0.0 else None for each, on_line in zip(up, line, strict=True)
        ),
    )


#: What counts lines that are read from memory, the best first, and writes to it; and the bytes of each. *Source*:
#: ProfInfer, section on counters: a refill of the last cache reads 64 B, a write to memory on Cortex-A76 is 16 B.
_READ_LINES, _LINE_BYTES = ("l3d_cache_refill", "ll_cache_miss_rd", "cache-misses", "llc-load-misses"), 64
_WRITES, _WRITE_BYTES = "mem_access_wr", 16
_STALLED, _CYCLES = ("stall_backend", "stalled-cycles-backend"), "cycles"


#: Costs an operator; None where no cost is known.
CostOf = Callable[[RecordedOperator], OpCost | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionTime:
    """All runs of one type of operator at one set of dimensions."""

    dimensions: Dimensions
    roles: tuple[str, ...]
    n: int
    median_ns: float
    total_ns: int
    #: FLOPs and bytes over the median time; None where no cost is known.
    flops_per_s: float | None
    bytes_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorType:
    """All runs of one type of operator in one phase."""

    phase: Phase
    op: str
    #: ggml type of what it mostly reads, in lower case.
    type: str
    n: int
    total_ns: int
    #: Part of the time of all operators of the phase.
    share_ratio: float
    #: By the work of the dimensions, ascending.
    dimensions: tuple[DimensionTime, ...]
    #: Median time over M x N x K x H, ns, of least relative distances; None where there are fewer than 3 dimensions.
    fit: LineFit | None
    #: What all its runs counted, by the counter's name; None where a run did not count.
    counted: Mapping[str, int | None]

    @property
    def memory_access_bytes(self) -> int | None:
        """Bytes read from memory, and written where that was counted; None where reads were not."""
        known = dict(self._known())
        lines = next((known[name] for name in _READ_LINES if name in known), None)
        return None if lines is None else lines * _LINE_BYTES + known.get(_WRITES, 0) * _WRITE_BYTES

    @property
    def stall_ratio(self) -> float | None:
        """Cycles in which the backend stalled over all cycles; None where nothing counted them."""
        known = dict(self._known())
        stalled, cycles = next((known[name] for name in _STALLED if name in known), None), known.get(_CYCLES)
        return None if stalled is None or not cycles else stalled / cycles

    def _known(self) -> Iterator[tuple[str, int]]:
        return ((name, count) for name, count in self.counted.items() if count is not None)


def operator_statistics(
    runs: OperatorRuns, table: OperatorTable, counter_names: tuple[str, ...] = (), cost_of: CostOf | None = None
) -> tuple[OperatorType, ...]:
    """Return the types of operators of each phase, those that took the most time first."""
    labels, of_run = table.labelled(runs, lambda operator, phase: (phase, operator.op, stored_type(operator)))
    totals = np.bincount(of_run, weights=runs.duration_ns, minlength=len(labels))
    phase_ns: dict[Phase, float] = {}
    for (phase, *_), total_ns in zip(labels, totals.tolist(), strict=True):
        phase_ns[phase] = phase_ns.get(phase, 0.0) + total_ns
    order = np.argsort(of_run, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(of_run, minlength=len(labels)))[:-1]) if labels else []
    found = [
        _type(label, part, runs, table, phase_ns, counter_names, cost_of)
        for label, part in zip(labels, parts, strict=True)
    ]
    return tuple(sorted(found, key=lambda each: (each.phase is Phase.DECODE, -each.total_ns, each.op)))


def _type(
    kind: tuple[Phase, str, str],
    part: Ints,
    runs: OperatorRuns,
    table: OperatorTable,
    phase_ns: Mapping[Phase, float],
    counter_names: tuple[str, ...],
    cost_of: CostOf | None,
) -> OperatorType:
    phase, op, type_name = kind
    rows, where = np.unique(table.rows_of(runs)[part], return_inverse=True)
    times_ns = runs.duration_ns[part]
    dimensions = tuple(_dimensions(rows, where, times_ns, table, cost_of))
    total_ns = int(times_ns.sum())
    return OperatorType(
        phase=phase,
        op=op,
        type=type_name,
        n=int(part.size),
        total_ns=total_ns,
        share_ratio=total_ns / phase_ns[phase] if phase_ns[phase] else 0.0,
        dimensions=dimensions,
        fit=fit_line(
            [each.dimensions.work for each in dimensions], [each.median_ns for each in dimensions], is_relative=True
        ),
        counted={
            name: None if (column == NOTHING).any() else int(column.sum())
            for name, column in zip(counter_names, runs.counters[part].T, strict=False)
        },
    )


def _dimensions(
    rows: Ints, where: Ints, times_ns: Ints, table: OperatorTable, cost_of: CostOf | None
) -> Iterator[DimensionTime]:
    members: dict[Dimensions, list[int]] = {}
    for place, row in enumerate(rows.tolist()):
        members.setdefault(dimensions_of(table.operators[row]), []).append(place)
    for dimensions, places in sorted(members.items(), key=lambda each: (each[0].work, each[0])):
        mine = times_ns[np.isin(where, places)]
        operators = [table.operators[int(rows[place])] for place in places]
        median_ns = float(np.median(mine))
        cost = cost_of(operators[0]) if cost_of is not None else None
        yield DimensionTime(
            dimensions=dimensions,
            roles=tuple(dict.fromkeys(operator.role for operator in operators)),
            n=int(mine.size),
            median_ns=median_ns,
            total_ns=int(mine.sum()),
            flops_per_s=_rate(None if cost is None else cost.flops, median_ns),
            bytes_per_s=_rate(None if cost is None else cost.moved_bytes, median_ns),
        )


def _rate(amount: int | None, time_ns: float) -> float | None:
    return None if amount is None or time_ns <= 0 else amount / time_ns * 1e9
