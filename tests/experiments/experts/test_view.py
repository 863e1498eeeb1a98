"""How experts are reused, told to people and machines."""

from __future__ import annotations

import json
import random

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.experts import view
from perfsuite.experiments.experts.view import ExpertReport, expert_chart, plain_experts
from perfsuite.report.plots.picture import picture_bytes
from perfsuite.testing.engine_traces import engine_trace
from tests.synthetic_statistics import expert_product, experts_of, step_events


def report(n_steps: int = 60) -> ExpertReport:
    """Return the report of two layers, of which one was timed."""
    chance = random.Random(4)
    chosen = [(step, layer, [chance.sample(range(8), 2)]) for step in range(n_steps) for layer in (0, 1)]
    events = [each for step in range(n_steps) for each in step_events(step, lambda at, *_: 1_000 + at, 1)]
    trace = engine_trace(events, graphs=((expert_product(0),),), experts=experts_of(chosen), n_experts=8)
    return view.expert_report(trace, name="run", n_cached=3)


def test_lines_and_tables_tell_the_same() -> None:
    found = report()
    lines = list(view.expert_lines(found))
    assert lines[0] == "2 layers of 8 experts, 60 steps"
    assert lines[1].startswith("a cache of 3 experts a layer hits ")
    assert lines[2].startswith("reuse distance and time: rank correlation ")
    assert list(view.cache_table(found.sizes).columns[0].cells) == ["1", "2", "4", "8"]
    assert view.layer_table(found.layers).row_count == 2
    assert view.fault_table(found.faults).row_count == len(found.faults.bins)


def test_hits_are_drawn_over_the_size() -> None:
    chart = expert_chart(report())
    caches, times = chart.panels
    assert [line.is_reference for line in caches.lines] == [False, True]
    assert all(lru <= best for lru, best in zip(caches.lines[0].y, caches.lines[1].y, strict=True))
    assert times.lines[0].x == tuple(sorted(times.lines[0].x))
    assert picture_bytes(chart, "svg").startswith(b"<?xml")


def test_without_experts_there_is_nothing_to_draw() -> None:
    with pytest.raises(PerfsuiteError, match="no choices of experts"):
        expert_chart(report(n_steps=0))


def test_a_report_is_json() -> None:
    plain = json.loads(json.dumps(plain_experts(report()), allow_nan=False))
    assert [each["layer"] for each in plain["layers"]] == [0, 1]
    assert [each["n_cached"] for each in plain["caches"]] == list(range(1, 9))
    assert plain["cache"] == plain["caches"][2]
    assert plain["faults"]["n_evaluations"] == 60
    assert plain["faults"]["n_major_faults"] is None
    assert set(plain["faults"]["distance_to_time"]) == {"rho", "p"}
