"""Operators over time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.observation import Observation, OperatorSpan, PhaseTimeline
from perfsuite.report.page.charts.timeline import timeline_figures
from perfsuite.testing.run_files import synthetic_observation, synthetic_run


def timeline(n_operators: int, n_roles: int) -> Observation:
    """One phase of operators of 1 µs, 10 µs apart, the roles by turns."""
    spans = tuple(
        OperatorSpan(role=f"role{place % n_roles}", op="ADD", layer=None, start_ns=place * 10_000, duration_ns=1_000)
        for place in range(n_operators)
    )
    return Observation(
        timelines=(PhaseTimeline(phase="decode", n_tokens=1, duration_ns=n_operators * 10_000, operators=spans),)
    )


def test_every_operator_is_a_bar_from_its_start_to_its_end() -> None:
    """In the lane of its role, with the most expensive role at the top."""
    observation = synthetic_observation(synthetic_run())
    prefill, decode = timeline_figures(observation)
    bars = prefill.spec["data"]["values"]
    assert len(bars) == len(observation.timelines[0].operators)
    spans = sorted((each.start_ns, each.duration_ns) for each in observation.timelines[0].operators)
    drawn = sorted((each["from"], each["to"]) for each in bars)
    assert drawn[100] == pytest.approx((spans[100][0] / 1e6, sum(spans[100]) / 1e6), rel=1e-4)
    assert prefill.spec["encoding"]["y"]["scale"]["domain"][0].startswith("ffn_up ")
    assert decode.title == "Operators over time, one decode step"


def test_too_many_operators_and_roles_are_drawn_together() -> None:
    """Neighbours of a lane become one bar, cheap roles share a lane, and a phase without operators is left out."""
    (figure,) = timeline_figures(timeline(9_000, 3))
    bars = figure.spec["data"]["values"]
    assert len(bars) <= 1500
    assert "drawn as one" in figure.summary
    assert max(each["to"] for each in bars) == pytest.approx(89.991, rel=1e-3)
    (figure,) = timeline_figures(timeline(400, 40))
    lanes = figure.spec["encoding"]["y"]["scale"]["domain"]
    assert len(lanes) == 17
    assert lanes[-1].startswith("all others ")
    observation = timeline(3, 1)
    empty = replace(observation, timelines=(replace(observation.timelines[0], operators=()),))
    assert not list(timeline_figures(empty))
