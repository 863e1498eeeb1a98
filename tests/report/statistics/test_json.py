"""Statistics as JSON."""

from __future__ import annotations

import json

import pytest

from perfsuite.report.statistics.json import plain_crossover, plain_statistics
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.statistics.crossover import crossover
from perfsuite.trace.statistics.statistics_view import trace_statistics

from ...synthetic_statistics import attention, experts_of, law_trace, product

SIZES = (64, 128, 256)
JSON_GRAPH = (*(product(f"ffn_{size}", 64, size) for size in SIZES), attention(256))


def test_statistics_are_json() -> None:
    """Everything is told in values that JSON has, units in the keys."""
    experts = experts_of((step, 0, [[step % 3, 4]]) for step in range(20))
    trace = law_trace(JSON_GRAPH, 20, lambda step, at, _: 1_000 * (at + 1) + 10 * step, experts=experts, n_experts=8)
    plain = json.loads(json.dumps(plain_statistics(trace_statistics(trace)), allow_nan=False))
    assert plain["schema"] == 1
    assert plain["tokens"]["context"] == list(range(1, 21))
    assert plain["tokens"]["growth"]["slope_ns"] == pytest.approx(40.0)
    assert plain["tokens"]["attention_share_ratio"] == pytest.approx(0.25)
    products = next(each for each in plain["operators"] if each["op"] == "MUL_MAT")
    assert [each["m"] for each in products["dimensions"]] == list(SIZES)
    assert products["fit_ns_over_work"]["n_points"] == 3
    assert (len(plain["threads"]), len(plain["balances"]), len(plain["experts"])) == (2, 4, 8)


def test_nothing_is_none_and_not_zero() -> None:
    """What a trace does not tell is null."""
    plain = plain_statistics(trace_statistics(engine_trace(graphs=())))
    assert plain["tokens"]["growth"] is None
    assert plain["tokens"]["attention_share_ratio"] is None


def test_a_crossover_is_json() -> None:
    """Both sides' times and lines are told by dimension."""
    trace = law_trace(JSON_GRAPH, 5, lambda _step, at, _thread: 1_000 * (at + 1))
    plain = json.loads(json.dumps(plain_crossover(crossover(trace, trace)), allow_nan=False))
    products = next(each for each in plain["operators"] if each["op"] == "MUL_MAT")
    assert products["winner"] == "cpu"
    assert [each["speedup_ratio"] for each in products["dimensions"]] == [1.0, 1.0, 1.0]
    assert products["cpu_ns_over_work"] == products["device_ns_over_work"]
