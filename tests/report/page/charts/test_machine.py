"""The state of the machine during a run."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.observation import NO_OBSERVATION
from perfsuite.report.page.charts.machine import machine_figures
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

from ..svg_pieces import Piece, pieces, points, tips

RUN = synthetic_run(n_cases=7)
OBSERVATION = synthetic_observation(RUN)


def marks(drawing: str, shape: str) -> list[Piece]:
    """Return the marks of a shape in the ink of the text: what stands out."""
    return [each for each in pieces(drawing, "use", "ink") if each.attributes["href"] == f"#shape-{shape}"]


def test_each_quantity_that_was_read_has_a_figure() -> None:
    """What was not read is left out, and a replicate that does not count is crossed."""
    assert [each.figure_id for each in machine_figures(RUN, OBSERVATION)] == [
        f"machine-{each}" for each in ("clock", "temperature", "power", "waiting", "sentinels")
    ]
    states = tuple(replace(each, temperature_celsius=None) for each in OBSERVATION.states)
    found = [each.figure_id for each in machine_figures(RUN, replace(OBSERVATION, states=states))]
    assert "machine-temperature" not in found
    assert [each.figure_id for each in machine_figures(RUN, NO_OBSERVATION)] == ["machine-sentinels"]
    clock = next(iter(machine_figures(RUN, OBSERVATION)))
    assert len(marks(clock.drawing, "cross")) == sum(not each.is_valid for each in OBSERVATION.states) == 1
    assert "1 replicate left out" in clock.summary


def test_a_throttled_replicate_has_a_ring() -> None:
    """Clock, temperature and power mark it and tell it; what has nothing to do with heat does not."""
    found = {each.figure_id: each for each in machine_figures(RUN, OBSERVATION)}
    n_throttled = sum(bool(each.throttled) for each in OBSERVATION.states)
    assert n_throttled > 1
    for name in ("clock", "temperature", "power"):
        figure = found[f"machine-{name}"]
        assert len(marks(figure.drawing, "ring")) == n_throttled
        assert sum(each.endswith(", throttled") for each in tips(figure.drawing)) == 2 * n_throttled
        assert f"{n_throttled} replicates throttled, marked with a ring." in figure.summary
    assert "throttled" not in found["machine-waiting"].summary
    states = tuple(replace(each, throttled=None) for each in OBSERVATION.states)
    assert not any("throttled" in each.summary for each in machine_figures(RUN, replace(OBSERVATION, states=states)))


def test_sentinels_are_told_over_their_own_medians() -> None:
    """Times of any length share an axis."""
    run = replace(RUN, sentinels_ns={"llama": {"memory": (100, 200, 400)}})
    *_, figure = machine_figures(run, NO_OBSERVATION)
    heights = [y for _, y in points(pieces(figure.drawing, "path")[0])]
    assert heights == sorted(heights)
    assert abs((heights[1] - heights[0]) - (heights[2] - heights[1])) < 0.002  # twice is as far as twice again
    assert "-50.0 % to × 2" in figure.summary
