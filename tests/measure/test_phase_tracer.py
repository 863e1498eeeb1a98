"""The interposed tracer: what its file holds, and a real run under it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.engine import Engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.native import build_phase_tracer
from perfsuite.measure.phase_tracer import CALL_DTYPE, HEADER_DTYPE, MAGIC, read_trace, tracer_environment
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.call_trace import TracedCall, TracedFunction
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.trace.call_spans import CallPattern, call_spans, embedding_ns, graph_ns

#: Entry, exit, function, count and thread, in the order in which calls return.
ROWS = [(30, 35, 6, 0, 1, 0), (10, 40, 0, 64, 1, 0), (45, 46, 1, 0, 1, 0)]


def written(path: Path, rows: list[tuple[int, ...]], **changed: Any) -> Path:
    header = np.zeros(1, HEADER_DTYPE)
    for name, value in {
        "magic": MAGIC,
        "n_calls": len(rows),
        "n_lost": 3,
        "first_raw_ns": 5,
        "first_monotonic_ns": 105,
        **changed,
    }.items():
        header[name] = value
    path.write_bytes(header.tobytes() + np.array(rows, CALL_DTYPE).tobytes())
    return path


@pytest.mark.parametrize("folder", ["my cache", "a:b", "tab\there"])
def test_a_library_that_the_loader_cannot_name_is_refused(folder: str) -> None:
    """The loader would pass it over, and there would be no trace."""
    with pytest.raises(MeasurementError, match="LD_PRELOAD takes no path with a space or a colon"):
        tracer_environment(Path("/home") / folder / "tracer.so", Path("/calls"))


def test_calls_come_in_the_order_of_entry(tmp_path: Path) -> None:
    """The batch is a decode's alone, and the offset leads from one clock to the other."""
    trace = read_trace(written(tmp_path / "calls", ROWS))
    assert trace.calls == (
        TracedCall(function=TracedFunction.DECODE, entry_ns=10, exit_ns=40, n_tokens=64),
        TracedCall(function=TracedFunction.GET_ROWS, entry_ns=30, exit_ns=35),
        TracedCall(function=TracedFunction.SYNCHRONIZE, entry_ns=45, exit_ns=46),
    )
    assert (trace.tracer, trace.n_lost, trace.monotonic_offset_ns) == ("interposed", 3, 100)


@pytest.fixture(scope="module")
def traced(
    engine: Engine, engine_cache: Path, small_plan: LlamaPlan, tmp_path_factory: pytest.TempPathFactory
) -> tuple[EngineRecord, Any, list[Span]]:
    """Run two repetitions after a filled cache under the tracer; return what the driver and the tracer saw."""
    path = tmp_path_factory.mktemp("traced") / "calls"
    plan = replace(small_plan, n_repetitions=2, n_depth=24, n_batch=16)
    payload = run_worker(plan, extra_environment=tracer_environment(build_phase_tracer(engine, engine_cache), path))
    trace = read_trace(path)
    pattern = CallPattern(n_prompt=plan.n_prompt, n_gen=plan.n_gen, n_depth=24, n_batch=16, n_repetitions=2)
    return EngineRecord.from_plain(payload["engine"]), trace, list(call_spans(trace, pattern))


def test_the_tracer_sees_the_phases_that_the_driver_times(traced: tuple[EngineRecord, Any, list[Span]]) -> None:
    """Same phases in the same order, each within the driver's own span of it, clocks being one to a millisecond."""
    record, trace, spans = traced
    own = [span for span in record.spans if span.phase is not Phase.LOAD]
    assert [(s.phase, s.repetition, s.token, s.n_tokens) for s in spans] == [
        (s.phase, s.repetition, s.token, s.n_tokens) for s in own
    ]
    offset_ns = trace.monotonic_offset_ns
    for mine, seen in zip(own, spans, strict=True):
        assert mine.start_ns - 10**6 <= seen.start_ns + offset_ns
        assert seen.end_ns + offset_ns <= mine.end_ns + 10**6


def test_graphs_and_gathers_lie_within_their_evaluation(
    traced: tuple[EngineRecord, Any, list[Span]], small_plan: LlamaPlan
) -> None:
    _, trace, spans = traced
    evaluated = [span for span in spans if span.phase in (Phase.PREFILL, Phase.DECODE)]
    assert len(evaluated) == 2 * (1 + small_plan.n_gen)
    for span in evaluated:
        graph, gather = graph_ns(trace, span), embedding_ns(trace, span)
        assert graph is not None
        assert gather is not None
        assert 0 < gather < graph < span.duration_ns
