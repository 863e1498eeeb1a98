"""Decode steps over the context."""

from __future__ import annotations

from perfsuite.records.observation import Observation, TokenLatency
from perfsuite.report.page.charts.tokens import tokens_figure
from perfsuite.testing.run_files import synthetic_run

from ..conftest import page_run


def observation(*times_ns: int) -> Observation:
    """Steps from 64 tokens on, each with three replicates around its time."""
    return Observation(
        tokens=tuple(
            TokenLatency(n_context=64 + place, samples_ns=(time - 1_000, time, time + 1_000))
            for place, time in enumerate(times_ns)
        )
    )


def test_each_step_has_its_median_and_band() -> None:
    """In one unit, over the tokens in the context."""
    (figure,) = tokens_figure(observation(2_000_000, 2_100_000, 2_200_000))
    steps = figure.spec["layer"][0]["data"]["values"]
    assert [(each["context"], each["time"]) for each in steps] == [(64, 2.0), (65, 2.1), (66, 2.2)]
    assert all(each["low"] < each["time"] < each["high"] for each in steps)
    assert "+10.0 %" in figure.summary


def test_a_slow_first_step_does_not_press_the_others_flat() -> None:
    """It is marked at the top of the axis, and told."""
    (figure,) = tokens_figure(observation(40_000_000, 2_000_000, 2_010_000, 2_020_000))
    line = figure.spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert line[1] < 2.2
    beyond = figure.spec["layer"][-2]["data"]["values"]
    assert [(each["context"], each["time"]) for each in beyond] == [(64, line[1])]
    assert "40.0 ms at 64 tokens" in figure.summary


def test_other_runs_are_thin_lines() -> None:
    """Of their medians, one for each run that recorded them; a single step is no line."""
    other = synthetic_run(n_cases=1)
    beside = [page_run(other, observation(2_050_000, 2_060_000)), page_run(other, Observation())]
    (figure,) = tokens_figure(observation(2_000_000, 2_100_000), beside)
    assert [each["time"] for each in figure.spec["layer"][1]["data"]["values"]] == [2.05, 2.06]
    assert "1 other run" in figure.summary
    assert not list(tokens_figure(observation(2_000_000)))
    assert len(list(tokens_figure(observation(2_000_000, 2_000_000)))) == 1
