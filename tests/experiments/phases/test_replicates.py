"""What a token costs, from the samples of a power sensor; and what recorded graphs are worth."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.device.stability.sampler import Sample
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.experiments.engine_runs import lost_events
from perfsuite.experiments.phases.replicates import check_graphs, joules_by_phase
from perfsuite.measure.board.watching import DEVICE_SAMPLES
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

_S = 10**9


def samples(watts: float | None, seconds: int) -> dict[str, Any]:
    """A payload whose board drew so much, twice a second."""
    none = dict.fromkeys(("temperature_celsius", "cpu_mhz", "is_throttled", "n_throttle_events", "counted_joules"))
    taken = [Sample(at_ns=at * _S // 2, power_watts=watts, **none) for at in range(2 * seconds + 1)]
    return {DEVICE_SAMPLES: [asdict(each) for each in taken]}


def span(phase: Phase, start_ns: int, end_ns: int, *, n_tokens: int = 1) -> Span:
    return Span(phase=phase, repetition=0, token=0, n_tokens=n_tokens, start_ns=start_ns, end_ns=end_ns)


def test_joules_are_those_of_a_token_in_the_middle_replicate(stored_record: EngineRecord) -> None:
    """Four tokens in two seconds at 10 W are 5 J each; a prefill of 10 ms is too short to tell."""
    tokens = [span(Phase.DECODE, _S + at * _S // 2, _S + (at + 1) * _S // 2) for at in range(4)]
    spans = (span(Phase.PREFILL, 10**7, 2 * 10**7, n_tokens=64), *tokens)
    found = joules_by_phase([samples(10.0, 5)], [replace(stored_record, spans=spans)])
    assert found["decode"] == pytest.approx(5.0)
    assert found["prefill"] is None
    decode = replace(stored_record, spans=(span(Phase.DECODE, _S, 3 * _S),))
    found = joules_by_phase([samples(watts, 5) for watts in (1.0, 2.0, 30.0)], [decode] * 3)
    assert found == {"decode": pytest.approx(4.0)}
    assert joules_by_phase([samples(None, 5), {}], [decode] * 2) == {}


def _config(tmp_path: Path) -> Any:
    weights = resolve("smollm2-135m-l2-q8_0", cache_dir=tmp_path)
    return SimpleNamespace(backend="cpu", workload=llama_workload(weights, find_scenario("p64-g24")))


def _with_op(record: EngineRecord, name: str, op: str) -> EngineRecord:
    """Return a record in whose graphs the tensors of that name are computed by another operator."""
    graphs = (
        tuple(replace(node, op=op) if node.tensor.name.startswith(name) and node.timed else node for node in graph)
        for graph in record.graphs
    )
    return replace(record, graphs=tuple(graphs))


def test_a_graph_that_is_as_expected_says_nothing(stored_record: EngineRecord, tmp_path: Path) -> None:
    for records in ([stored_record], []):
        checked = check_graphs(_config(tmp_path), records)
        assert (checked.problems, checked.otherwise, checked.notes) == ({}, {}, ())


def test_what_is_computed_otherwise_has_no_forecast(stored_record: EngineRecord, tmp_path: Path) -> None:
    checked = check_graphs(_config(tmp_path), [_with_op(stored_record, "cache_k", "CPY")])
    assert checked.problems == {}
    assert set(checked.otherwise) == {(Phase.PREFILL, "cache_k"), (Phase.DECODE, "cache_k")}
    (note,) = checked.notes
    assert note.startswith("cache_k: computed otherwise than expected, and has no forecast; ")


def test_work_that_is_missing_is_a_problem(stored_record: EngineRecord, tmp_path: Path) -> None:
    short = replace(stored_record, graphs=tuple(graph[:-1] for graph in stored_record.graphs))
    checked = check_graphs(_config(tmp_path), [short])
    assert all("lost events" in text for texts in checked.problems.values() for text in texts)
    renamed = tuple(
        tuple(
            replace(node, tensor=replace(node.tensor, name=node.tensor.name.replace("result_output", "other")))
            for node in graph
        )
        for graph in stored_record.graphs
    )
    checked = check_graphs(_config(tmp_path), [replace(stored_record, graphs=renamed)])
    assert {role for _, role in checked.problems} == {"result_output", "other"}
    assert lost_events([stored_record]) is None
    assert lost_events([replace(stored_record, n_dropped=3)]) == (
        "the recorder lost events (0 evaluations incomplete, 3 events dropped)"
    )
