"""Decode steps over the context."""

from __future__ import annotations

from perfsuite.records.observation import Observation, TokenLatency
from perfsuite.report.page.charts.tokens import tokens_figure
from perfsuite.testing.run_files import synthetic_run

from ..conftest import page_run
from ..svg_pieces import pieces, points, tips


def observation(*times_ns: int) -> Observation:
    """Steps from 64 tokens on, each with three replicates around its time."""
    return Observation(
        tokens=tuple(
            TokenLatency(n_context=64 + place, samples_ns=(time - 1_000, time, time + 1_000))
            for place, time in enumerate(times_ns)
        )
    )


def test_each_step_has_its_median_and_band() -> None:
    """Over the tokens in the context; the band lies around the line."""
    (figure,) = tokens_figure(observation(2_000_000, 2_100_000, 2_200_000))
    assert tips(figure.drawing) == ["64 tokens: 2.00 ms", "65 tokens: 2.10 ms", "66 tokens: 2.20 ms"]
    band, line = (points(pieces(figure.drawing, "path", look)[0]) for look in ("band", "k0"))
    assert [x for x, _ in line] == [0.0, 0.5, 1.0]
    lower, upper = band[:3], band[:2:-1]
    assert all(low[1] <= middle[1] <= high[1] for low, middle, high in zip(lower, line, upper, strict=True))
    assert "+10.0 %" in figure.summary


def test_a_slow_first_step_does_not_press_the_others_flat() -> None:
    """It is marked at the top of the axis, and told; times and tokens that are compared are of the others."""
    (figure,) = tokens_figure(observation(40_000_000, 2_000_000, 2_010_000, 2_020_000))
    (beyond,) = (each for each in pieces(figure.drawing, "use") if each.attributes["href"] == "#shape-up")
    assert (beyond.attributes["x"], beyond.attributes["y"]) == ("0%", "0")
    assert "64 tokens: 40.0 ms" in tips(figure.drawing)
    assert "40.0 ms at 64 tokens" in figure.summary
    assert "from 2.00 ms to 2.02 ms (+1.0 %) while the context grows from 65 to 67 tokens" in figure.summary
    assert len(points(pieces(figure.drawing, "path", "k0")[0])) == 3


def test_other_runs_are_dashed_lines() -> None:
    """Of their medians, one for each run that recorded them; a single step is no line."""
    other = synthetic_run(n_cases=1)
    beside = [page_run(other, observation(2_050_000, 2_060_000)), page_run(other, Observation())]
    (figure,) = tokens_figure(observation(2_000_000, 2_100_000), beside)
    assert len(pieces(figure.drawing, "path", "dashed")) == 1
    assert "1 other run" in figure.summary
    assert not list(tokens_figure(observation(2_000_000)))
    assert len(list(tokens_figure(observation(2_000_000, 2_000_000)))) == 1


def test_late_steady_growth_is_no_step_beyond() -> None:
    """The words say where the line begins and ends, the axis holds all of it, and a thousand steps have no marks."""
    (figure,) = tokens_figure(observation(*(1_000_000 + 4_000_000 * place // 999 for place in range(1000))))
    told = "from 1.00 ms to 5.00 ms (× 5) while the context grows from 64 to 1063 tokens"
    assert figure.summary.startswith(f"1000 steps, {told}.")
    assert "beyond" not in figure.summary
    assert not pieces(figure.drawing, "use")
    line = points(pieces(figure.drawing, "path", "k0")[0])
    assert len(line) == 1000
    assert max(y for _, y in line) < 1.0
