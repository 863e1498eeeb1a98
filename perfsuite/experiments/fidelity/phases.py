"""Phases and sums of operators against an independent tracer's times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeAlias

from perfsuite.errors import MeasurementError
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow
from perfsuite.records.call_trace import CallTrace
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EMBEDDING_ROLE, EngineRecord, Phase, Span
from perfsuite.trace.call_spans import CallPattern, call_spans, embedding_ns, graph_ns
from perfsuite.trace.samples import TracedPhase, replicate_samples, traced_phases

#: The phases of which there are rows, in their order; `Phase.LOAD` calls nothing that is traced.
COMPARED = (Phase.END_TO_END, Phase.PREFILL, Phase.DECODE, Phase.EMBEDDING, Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """What the suite and the tracer recorded of one process."""

    record: EngineRecord
    trace: CallTrace
    pattern: CallPattern


#: One occurrence of a phase on both clocks: measured, and its ground truth, ns.
_Pair: TypeAlias = tuple[int, int]


def phase_rows(runs: Sequence[ComparedRun]) -> tuple[FidelityRow, ...]:
    """Return a row for each phase that occurred: medians over the occurrences of all runs, matched one by one.

    Raises MeasurementError: a tracer saw other calls than the driver's spans stand for.
    """
    found = defaultdict[Phase, list[_Pair]](list)
    for run in runs:
        for phase, pair in (*_span_pairs(run), *_embedding_pairs(run)):
            found[phase].append(pair)
    tracer = runs[0].trace.tracer
    return tuple(_row(phase, found[phase], tracer) for phase in COMPARED if phase in found)


def operator_rows(runs: Sequence[ComparedRun]) -> tuple[FidelityRow, ...]:
    """Return, for prefill and decode, what the suite tells of operators against ground truths of the same phase.

    - ``prefill``: the medians by role and of the rest, summed up as the suite's tables have them, against the phase;
    - ``prefill/graph``: all operators of an occurrence, without the rest, against the time in the graph's computation.

    The rest is time of the phase outside its operators, and is beside the first.

    Raises MeasurementError: a tracer saw other calls than the driver's spans stand for.
    """
    rows = (row for phase in (Phase.PREFILL, Phase.DECODE) for row in (_told_row(runs, phase), _graph_row(runs, phase)))
    return tuple(row for row in rows if row is not None)


def _told_row(runs: Sequence[ComparedRun], phase: Phase) -> FidelityRow | None:
    samples = [replicate_samples(run.record) for run in runs]
    told = [each for each in samples if each.operator_ns.get(phase)]
    truths = [truth_ns for run in runs for found, (_, truth_ns) in _span_pairs(run) if found is phase]
    if not told or not truths:
        return None
    measured = median(sum(each.operator_ns[phase].values()) + each.rest_ns[phase] for each in told)
    truth = median(truths)
    return FidelityRow(
        name=phase.value,
        kind=FidelityKind.OPERATORS,
        measured_ns=measured,
        ground_truth_ns=truth,
        error_ns=measured - truth,
        n=len(truths),
        ground_truth=runs[0].trace.tracer,
        beside_ns={"rest_ns": median(each.rest_ns[phase] for each in told)},
    )


def _graph_row(runs: Sequence[ComparedRun], phase: Phase) -> FidelityRow | None:
    pairs = [
        (mine.operators_ns, truth_ns)
        for run in runs
        for mine, truth in _occurrences(run, phase)
        if (truth_ns := graph_ns(run.trace, truth)) is not None
    ]
    row = _row(phase, pairs, runs[0].trace.tracer) if pairs else None
    return row and replace(row, name=f"{phase.value}/graph", kind=FidelityKind.OPERATORS)


def _occurrences(run: ComparedRun, phase: Phase) -> Iterator[tuple[TracedPhase, Span]]:
    """Yield each occurrence of a phase with its operators, and as the tracer saw it; none without operators."""
    if not evaluations_of(run.record):
        return
    own = tuple(traced_phases(run.record, phase))
    traced = [span for span in call_spans(run.trace, run.pattern) if span.phase is phase]
    what = f"operators were recorded in {len(own)} occurrences of {phase.value}, and"
    _check_order(what, [each.span for each in own], traced, run.trace.tracer)
    yield from zip(own, traced, strict=True)


def _row(phase: Phase, pairs: Sequence[_Pair], tracer: str) -> FidelityRow:
    return FidelityRow(
        name=phase.value if tracer == "interposed" else f"{phase.value}/{tracer}",
        kind=FidelityKind.PHASES,
        measured_ns=median(measured_ns for measured_ns, _ in pairs),
        ground_truth_ns=median(truth_ns for _, truth_ns in pairs),
        error_ns=median(measured_ns - truth_ns for measured_ns, truth_ns in pairs),
        n=len(pairs),
        ground_truth=tracer,
    )


def _span_pairs(run: ComparedRun) -> Iterator[tuple[Phase, _Pair]]:
    own = [span for span in run.record.spans if span.phase is not Phase.LOAD]
    traced = call_spans(run.trace, run.pattern)
    _check_order(f"the driver recorded {len(own)} phases and", own, traced, run.trace.tracer)
    yield from ((mine.phase, (mine.duration_ns, truth.duration_ns)) for mine, truth in zip(own, traced, strict=True))


def _check_order(what: str, own: Sequence[Span], traced: Sequence[Span], tracer: str) -> None:
    mine, theirs = (
        [(each.phase, each.repetition, each.token, each.n_tokens) for each in side] for side in (own, traced)
    )
    if mine != theirs:
        raise MeasurementError(f"{what} the {tracer} tracer saw {len(traced)}, or in another order")


def _embedding_pairs(run: ComparedRun) -> Iterator[tuple[Phase, _Pair]]:
    """Yield the gather of each prefill, which is a phase of its own where operators are recorded."""
    for mine, truth in _occurrences(run, Phase.PREFILL):
        truth_ns, measured_ns = embedding_ns(run.trace, truth), mine.role_ns.get(EMBEDDING_ROLE)
        if truth_ns and measured_ns:
            yield Phase.EMBEDDING, (measured_ns, truth_ns)
