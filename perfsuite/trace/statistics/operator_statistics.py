"""Time by type of operator and dimensions: a line through it, the rates that it reaches, and what was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from perfsuite.records.engine_trace import NOTHING, Ints
from perfsuite.records.events import Phase
from perfsuite.trace.operators import RecordedOperator
from perfsuite.trace.statistics.line_fit import LineFit, fit_line
from perfsuite.trace.statistics.operator_dimensions import Dimensions, dimensions_of, stored_type
from perfsuite.trace.statistics.operator_runs import OperatorRuns
from perfsuite.trace.statistics.operator_table import OperatorTable

#: What counts lines that are read from memory, the best first, and writes to it; and the bytes of each. *Source*:
#: ProfInfer, section on counters: a refill of the last cache reads 64 B, a write to memory on Cortex-A76 is 16 B.
_READ_LINES, _LINE_BYTES = ("l3d_cache_refill", "ll_cache_miss_rd", "cache-misses", "llc-load-misses"), 64
_WRITES, _WRITE_BYTES = "mem_access_wr", 16
_STALLED, _CYCLES = ("stall_backend", "stalled-cycles-backend"), "cycles"


class Work(Protocol):
    """What an operator computes and moves."""

    @property
    def flops(self) -> int:
        """Operations, a multiply-accumulate being 2."""

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""


#: Costs an operator; None where no cost is known.
CostOf = Callable[[RecordedOperator], Work | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionTime:
    """All runs of one type of operator at one set of dimensions."""

    dimensions: Dimensions
    #: Roles that have them.
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
    labels, of_run = table.labelled(runs, _kind)
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
    return tuple(sorted(found, key=lambda each: (each.phase is not Phase.PREFILL, -each.total_ns, each.op)))


_Kind = tuple[Phase, str, str]


def _kind(operator: RecordedOperator, phase: Phase) -> _Kind:
    return phase, operator.op, stored_type(operator)


def _type(
    kind: _Kind,
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
        counted=dict(zip(counter_names, _summed(runs.counters[part]), strict=False)),
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


def _summed(counted: Ints) -> list[int | None]:
    return [None if (column == NOTHING).any() else int(column.sum()) for column in counted.T]
