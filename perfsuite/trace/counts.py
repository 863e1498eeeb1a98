"""Counted work: what the rows of the counting tool and a process's record come to, by phase and operator.

In such a record a clock's reading is the number of instructions executed until then (`native/src/counting/counting.c`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.counts import METRICS, MOST_ROWS, CountRow
from perfsuite.records.engine_columns import RING_DTYPE
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import ReplicateSamples, replicate_samples

#: Bits below a count that keep readings in their order where nothing was counted between them.
_ORDER_BITS = (MOST_ROWS - 1).bit_length()

_Ints = npt.NDArray[np.int64]


def counts_of(record: EngineRecord, rows: npt.NDArray[Any]) -> tuple[CountRow, ...]:
    """Return what a process did between the readings of its record, by phase and operator, in the record's order.

    Raises MeasurementError: the record has a time that is no reading, so it was not counted.
    """
    found = {metric: replicate_samples(_recounted(record, rows, metric), sum) for metric in METRICS}
    first = found[METRICS[0]]
    names: list[tuple[Phase, str]] = []
    for phase in first.phase_ns:
        names += [(phase, ""), *((phase, role) for role in first.operator_ns.get(phase, ()))]
    return tuple(
        CountRow(phase=phase.value, role=role, **{metric: _count(found[metric], phase, role) for metric in METRICS})
        for phase, role in names
    )


def _count(samples: ReplicateSamples, phase: Phase, role: str) -> int:
    return (samples.operator_ns[phase][role] if role else samples.phase_ns[phase]) >> _ORDER_BITS


def _recounted(record: EngineRecord, rows: npt.NDArray[Any], metric: str) -> EngineRecord:
    """Return a record whose times are what was counted of a metric until then, with the reading's place below."""
    counted: _Ints = (rows[metric].astype(np.int64) << _ORDER_BITS) + np.arange(len(rows))
    events = np.frombuffer(record.events, RING_DTYPE).copy()
    events["ns"] = counted[_places(rows, events["ns"])]
    ends = _places(rows, np.array([(span.start_ns, span.end_ns) for span in record.spans], np.int64).reshape(-1, 2))
    spans = tuple(
        replace(span, start_ns=int(counted[start]), end_ns=int(counted[end]))
        for span, (start, end) in zip(record.spans, ends, strict=True)
    )
    return replace(record, spans=spans, events=events.tobytes(), thread_events=b"", clock=None)


def _places(rows: npt.NDArray[Any], times: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    instructions = rows["instructions"].astype(np.int64)
    places = np.searchsorted(instructions, times)
    if np.any(instructions[np.minimum(places, len(rows) - 1)] != times):
        raise MeasurementError("the record has times that no counter gave; count with perfsuite's own tool")
    return places
