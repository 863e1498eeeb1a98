"""Traces, duplications and rows that no tracer and no device has made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow
from perfsuite.records.call_trace import CallTrace, TracedCall, TracedFunction
from perfsuite.records.duplication import DuplicationRound, KernelDuplication
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.trace.call_spans import CallPattern

#: What the stored record of tests/data was told to run.
STORED_PATTERN = CallPattern(n_prompt=64, n_gen=24, n_batch=512, n_repetitions=1, with_warm_up=False)


def calls_of(spans: Sequence[Span], *, inset_ns: int = 0, shift_ns: int = 0) -> Iterator[TracedCall]:
    """Yield the calls that a driver makes for its spans, each `inset_ns` within them at both ends."""
    for span in spans:
        begin, end = span.start_ns + inset_ns + shift_ns, span.end_ns - inset_ns + shift_ns
        middle = (begin + end) // 2
        if span.phase in (Phase.PREFILL, Phase.DECODE):
            yield _call(TracedFunction.DECODE, begin, end - 10, span.n_tokens)
            yield _call(TracedFunction.GRAPH, begin + 20, end - 20)
            yield _call(TracedFunction.GET_ROWS, begin + 30, begin + 30 + 1000)
            yield _call(TracedFunction.GET_ROWS, middle, middle + 5)
            yield _call(TracedFunction.SYNCHRONIZE, end - 8, end)
        elif span.phase is Phase.COPY:
            yield _call(TracedFunction.GET_LOGITS, begin, begin + 10)
            yield _call(TracedFunction.COPY, begin + 10, end)
        elif span.phase is Phase.SOFTMAX:
            yield _call(TracedFunction.SOFTMAX, begin, end)
        elif span.phase is Phase.SAMPLING:
            yield _call(TracedFunction.SAMPLE, begin, end)


def trace_of(record: EngineRecord, **changed: Any) -> CallTrace:
    """Return what a tracer would have seen of a record; by default the very same times."""
    calls = sorted(calls_of(record.spans, **changed), key=lambda each: (each.entry_ns, -each.exit_ns))
    return CallTrace(tracer="interposed", calls=tuple(calls), n_lost=0, monotonic_offset_ns=0)


def duplication(name: str = "kernel/add/count1048576/f32", **changed: Any) -> KernelDuplication:
    """Return three rounds of a kernel that takes 200 µs, whose dispatch adds 2 µs."""
    rounds = tuple(
        DuplicationRound(
            base_ns=210_000,
            duplicated_ns=210_000 + 1000 * truth_ns,
            base_execution_ns=203_000,
            duplicates_execution_ns=1001 * 200_000,
            duplicates_occupied_ns=1000 * 201_000,
        )
        for truth_ns in (202_000, 201_000, 204_000)
    )
    fields = {"n_duplicates": 1000, "n_wanted": 1000, "rounds": rounds, "problem": None, **changed}
    return KernelDuplication(name=name, **fields)


def row(name: str, measured_ns: float | None, truth_ns: float | None, **changed: Any) -> FidelityRow:
    is_kernel = name.startswith("kernel/")
    error_ns = None if measured_ns is None or truth_ns is None else measured_ns - truth_ns
    fields = {
        "kind": FidelityKind.KERNELS if is_kernel else FidelityKind.PHASES,
        "ground_truth": "duplication" if is_kernel else "interposed",
        "n": 3,
        "error_ns": error_ns,
        **changed,
    }
    return FidelityRow(name=name, measured_ns=measured_ns, ground_truth_ns=truth_ns, **fields)


def _call(function: TracedFunction, entry_ns: int, exit_ns: int, n_tokens: int | None = None) -> TracedCall:
    return TracedCall(function=function, entry_ns=entry_ns, exit_ns=exit_ns, n_tokens=n_tokens)
