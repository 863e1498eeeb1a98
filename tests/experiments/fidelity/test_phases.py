"""Phases and operators of a stored record against traces of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.fidelity import phases
from perfsuite.experiments.fidelity.phases import ComparedRun, operator_rows, phase_rows
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow
from perfsuite.records.events import EMBEDDING_ROLE, EngineRecord, Phase
from perfsuite.trace.samples import TracedPhase, replicate_samples, traced_phases
from tests.synthetic_fidelity import STORED_PATTERN, trace_of


def compared(record: EngineRecord, **changed: int) -> ComparedRun:
    return ComparedRun(record=record, trace=trace_of(record, **changed), pattern=STORED_PATTERN)


def by_name(rows: tuple[FidelityRow, ...]) -> dict[str, FidelityRow]:
    assert len({row.name for row in rows}) == len(rows)
    return {row.name: row for row in rows}


def test_the_error_is_that_of_the_occurrences(stored_record: EngineRecord) -> None:
    """Whatever lies between the clocks there is none; every span 30 ns longer at both ends is one of 60 ns."""
    told = ("prefill", "decode", "copy", "softmax", "sampling")
    rows = by_name(phase_rows([compared(stored_record, shift_ns=10**15)]))
    assert {(rows[name].error_ns, rows[name].accuracy_percent) for name in told} == {(0, 100.0)}
    rows = by_name(phase_rows([compared(stored_record, inset_ns=30)]))
    assert {rows[name].error_ns for name in told} == {60}
    durations = [span.duration_ns for span in stored_record.spans if span.phase is Phase.DECODE]
    assert (rows["decode"].measured_ns, rows["decode"].ground_truth_ns) == (median(durations), median(durations) - 60)


def test_the_embedding_is_the_gather_of_the_prefill(stored_record: EngineRecord) -> None:
    row = by_name(phase_rows([compared(stored_record)]))["embedding"]
    (prefill,) = traced_phases(stored_record, Phase.PREFILL)
    assert (row.measured_ns, row.ground_truth_ns, row.n) == (prefill.role_ns[EMBEDDING_ROLE], 1000, 1)


def test_other_spans_than_calls_are_refused(stored_record: EngineRecord) -> None:
    run = compared(stored_record)
    spans = list(stored_record.spans)
    spans[1], spans[2] = spans[2], spans[1]
    other = replace(run, record=replace(stored_record, spans=tuple(spans)))
    with pytest.raises(MeasurementError, match="or in another order"):
        phase_rows([other])


def test_operators_of_other_occurrences_are_refused(
    stored_record: EngineRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operators of fewer decode steps than the tracer saw are reported with both counts, and nothing is paired."""
    own = tuple(traced_phases(stored_record, Phase.DECODE))

    def fewer(record: EngineRecord, phase: Phase) -> Iterator[TracedPhase]:
        yield from own[1:] if phase is Phase.DECODE else traced_phases(record, phase)

    monkeypatch.setattr(phases, "traced_phases", fewer)
    message = f"in {len(own[1:])} occurrences of decode, and the interposed tracer saw {len(own)}"
    with pytest.raises(MeasurementError, match=message):
        operator_rows([compared(stored_record)])


def test_operators_are_summed_up_and_held_against_the_graph(stored_record: EngineRecord) -> None:
    """Medians by role and the rest's are compared with the phase; without the rest they are what the graph takes."""
    rows = by_name(operator_rows([compared(stored_record)]))
    samples = replicate_samples(stored_record)
    for phase in (Phase.PREFILL, Phase.DECODE):
        row = rows[phase.value]
        assert row.measured_ns == sum(samples.operator_ns[phase].values()) + samples.rest_ns[phase]
        assert row.beside_ns == {"rest_ns": samples.rest_ns[phase]}
        assert row.ground_truth_ns == median(s.duration_ns for s in stored_record.spans if s.phase is phase)
        row, occurrences = rows[f"{phase.value}/graph"], tuple(traced_phases(stored_record, phase))
        assert row.measured_ns == median(each.operators_ns for each in occurrences)
        assert row.ground_truth_ns == median(each.span.duration_ns - 40 for each in occurrences)
        assert row.n == len(occurrences)
        assert row.kind is FidelityKind.OPERATORS
