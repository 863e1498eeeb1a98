"""The picture of a study."""

from __future__ import annotations

from pathlib import Path

from perfsuite.experiments.study.joined import Study, TokenKind, join
from perfsuite.experiments.study.latencies import known_latencies
from perfsuite.experiments.study.pictures import study_chart
from perfsuite.experiments.study.plan_file import read_plan
from perfsuite.experiments.study.scores import read_scores

MADE_UP_SUITE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "study" / "made-up-suite.toml"


def study() -> Study:
    """Return the example whose numbers are all made up."""
    plan = read_plan(MADE_UP_SUITE)
    return join(plan, read_scores(plan), known_latencies(plan, None))


def test_each_task_has_a_panel_for_either_token() -> None:
    """Two tasks beside each other by input and by output tokens."""
    chart = study_chart(study())
    assert [panel.title for panel in chart.panels] == [
        f"{task}, {kind} tokens" for task in ("arc_easy", "arc_challenge") for kind in ("input", "output")
    ]
    assert chart.n_columns == 2
    assert chart.panels[1].x_axis.caption == "time of an output token (s)"


def test_all_runs_are_points_and_the_knee_is_ringed() -> None:
    """Originals and quantised ones are told apart, the frontier goes through its members."""
    found = study()
    panel = study_chart(found).panels[1]
    assert [(group.label, group.kind, len(group.x)) for group in panel.groups] == [
        ("Pythia", "original", 4),
        ("Pythia", "quantised", 4),
    ]
    frontier = found.frontier("arc_easy", TokenKind.OUTPUT)
    (line,) = panel.lines
    assert line.x == tuple(each.latency_s for each in frontier.members)
    assert frontier.knee is not None
    assert panel.ringed is not None
    assert (panel.ringed.x, panel.ringed.y) == ((frontier.knee.latency_s,), (frontier.knee.accuracy,))
