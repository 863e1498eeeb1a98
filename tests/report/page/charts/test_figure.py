"""All figures of a run together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.observation import NO_OBSERVATION
from perfsuite.report.page.charts import Figure, figures
from perfsuite.report.page.charts.figure import short_names
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_observation, synthetic_run

from ..conftest import observed_run
from ..svg_pieces import pieces


def all_figures(*names: str) -> tuple[Figure, ...]:
    """The figures of a run in which everything is there, beside two others."""
    run = synthetic_run(n_cases=200, names=names)
    observation = synthetic_observation(run)
    if names:
        states = tuple(replace(each, group=names[0]) for each in observation.states)
        observation = replace(observation, states=states)
    others = [synthetic_run(n_cases=200, seed=seed, started_at=f"2026-02-0{seed}T02:00:00+00:00") for seed in (1, 2)]
    return figures(run, observation, [observed_run(each) for each in others])


def test_every_subject_is_shown_where_it_was_recorded() -> None:
    """No id is used twice, and words are short enough to be read out; a run of nothing has none."""
    found = all_figures()
    assert [each.figure_id for each in found] == list(dict.fromkeys(each.figure_id for each in found))
    assert list(dict.fromkeys(each.subject for each in found)) == [
        *("operators", "roofline", "tokens", "machine", "runs"),
    ]
    empty = replace(synthetic_run(n_cases=0), sentinels_ns={})
    assert figures(empty, NO_OBSERVATION) == ()
    for figure in found:
        assert 0 < len(figure.title) <= 60
        assert 40 <= len(figure.summary) <= 600, figure.summary


def test_names_make_no_element() -> None:
    usual, strange = (
        {(each.tag, *sorted(each.attributes)) for figure in found for each in pieces(figure.drawing)}
        for found in (all_figures(), all_figures(*HOSTILE_NAMES))
    )
    assert strange <= usual


@pytest.mark.parametrize("most", [8, 22])
def test_short_names_are_short_and_no_two_are_alike(most: int) -> None:
    """Hostile names, and twins of each, get labels of their own."""
    names = [*HOSTILE_NAMES, *HOSTILE_NAMES, "x" * 99, "x" * 98 + "y", "x" * 50 + "z" + "x" * 48, "a", "a (2)", "a"]
    short = short_names(names, most)
    assert len(set(short)) == len(short) == len(names)
    assert max(map(len, short)) <= most + len(" (10)") - 4
