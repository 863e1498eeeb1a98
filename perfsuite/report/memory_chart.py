"""The picture of resident memory over a run, by phase, beside what was predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.records.chart import Axis, Line, LineRole, XYChart, XYPanel
from perfsuite.records.events import GRAPH_PHASES
from perfsuite.records.memory_timeline import MemorySample
from perfsuite.units import NS_PER_S, format_bytes

_MIB = 1024 * 1024
_X_AXIS = Axis(label="time (s)", least=0.0)
_Y_AXIS = Axis(label="resident memory (MiB)", least=0.0)

PHASE_LABELS = {
    "start": "before the model is opened",
    "load": "load",
    "warm_up": "warm-up",
    **{phase.value: phase.value.replace("_", " ") for phase in GRAPH_PHASES},
}
PREDICTED_LABEL = "base and predicted peak"


def memory_chart(records: Sequence[MemoryRecord]) -> XYChart:
    """Return a panel for each record: what is resident over time, a line for each phase, and what was predicted.

    Raises PerfsuiteError where there is no record.
    """
    if not records:
        raise PerfsuiteError("memory chart: records is empty, expected at least one; measure memory first")
    furthest = max(records, key=lambda record: abs(record.peak.unexplained_ratio or 0.0))
    ratio = furthest.peak.unexplained_ratio or 0.0
    return XYChart(
        title=(
            f"Peaks of resident memory: {format_bytes(furthest.peak.measured_bytes)} of {furthest.weights} in "
            f"{furthest.scenario}, the furthest from its prediction, is {ratio:+.1%} away"
        ),
        note="Anonymous, file-backed and shared pages; mapped weights count as far as they are in the page cache",
        n_columns=min(2, len(records)),
        panels=tuple(_panel(record) for record in records),
    )


def _panel(record: MemoryRecord) -> XYPanel:
    first_ns, last_ns = record.timeline.samples[0].at_ns, record.timeline.samples[-1].at_ns
    predicted = record.peak.predicted_bytes / _MIB
    reference = Line(
        label=PREDICTED_LABEL,
        x=(0.0, (last_ns - first_ns) / NS_PER_S),
        y=(predicted, predicted),
        role=LineRole.REFERENCE,
    )
    return XYPanel(
        title=f"{record.weights}, {record.scenario}",
        x_axis=_X_AXIS,
        y_axis=_Y_AXIS,
        lines=(*_phase_lines(record, first_ns), reference),
    )


def _phase_lines(record: MemoryRecord, first_ns: int) -> Iterator[Line]:
    """Yield a line for each phase; it begins where the one before it ended, so that the curve has no gaps."""
    pieces: list[tuple[str, list[MemorySample]]] = []
    for sample in record.timeline.samples:
        name = _phase_at(record, sample.at_ns)
        if not pieces or pieces[-1][0] != name:
            pieces.append((name, [pieces[-1][1][-1]] if pieces else []))
        pieces[-1][1].append(sample)
    for name, samples in pieces:
        yield Line(
            label=PHASE_LABELS.get(name, name),
            x=tuple((sample.at_ns - first_ns) / NS_PER_S for sample in samples),
            y=tuple(sample.rss_bytes / _MIB for sample in samples),
        )


def _phase_at(record: MemoryRecord, at_ns: int) -> str:
    begun = [phase for phase in record.timeline.phases if phase.start_ns <= at_ns]
    return max(begun, key=lambda phase: phase.start_ns).name if begun else "start"
