"""The Pareto frontier and its knee."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.frontier import Frontier, TradeOff, pareto_frontier

PAIRS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


def frontier(*pairs: tuple[float, float]) -> Frontier:
    """Return the frontier of latencies and accuracies; each is called by its place."""
    found = [TradeOff(name=str(at), latency_s=pair[0], accuracy=pair[1]) for at, pair in enumerate(pairs)]
    return pareto_frontier(found)


def names(found: Frontier) -> list[str]:
    """Return what is on the frontier."""
    return [each.name for each in found.members]


def test_what_is_slower_and_no_better_is_left_out() -> None:
    """The frontier goes from the fastest to the most accurate."""
    assert names(frontier((4, 0.9), (1, 0.2), (2, 0.6), (3, 0.5), (5, 0.9), (1, 0.1))) == ["1", "2", "0"]


def test_equals_stay_together() -> None:
    """Two of one latency and one accuracy do not dominate each other."""
    assert names(frontier((1, 0.5), (1, 0.5), (2, 0.5))) == ["0", "1"]


@given(pairs=PAIRS)
def test_everything_else_is_dominated_by_a_member(pairs: list[tuple[float, float]]) -> None:
    """Who is left out is beaten by somebody on the frontier, who is beaten by nobody."""
    found = frontier(*pairs)
    inside = set(names(found))
    for at, (latency_s, accuracy) in enumerate(pairs):
        better = [
            other
            for other, (other_s, other_accuracy) in enumerate(pairs)
            if other_s <= latency_s
            and other_accuracy >= accuracy
            and (other_s, other_accuracy) != (latency_s, accuracy)
        ]
        assert bool(better) is (str(at) not in inside)
        assert not better or inside & set(map(str, better))


def test_the_knee_is_furthest_above_the_chord() -> None:
    """Scaled to (0, 0), (0.25, 0.8), (0.5, 0.9), (1, 1) the heights are 0, 0.55, 0.4 and 0."""
    found = frontier((1.0, 0.1), (2.0, 0.5), (3.0, 0.55), (5.0, 0.6))
    assert found.knee is not None
    assert found.knee.name == "1"


@given(pairs=PAIRS, scale_s=st.sampled_from([0.5, 4.0]), scale=st.sampled_from([0.25, 8.0]))
def test_the_knee_depends_on_no_unit(pairs: list[tuple[float, float]], scale_s: float, scale: float) -> None:
    """Other units of time and accuracy leave it where it is."""
    knee = frontier(*pairs).knee
    other = frontier(*((latency_s * scale_s, accuracy * scale) for latency_s, accuracy in pairs)).knee
    assert (knee and knee.name) == (other and other.name)


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, 0.5)],
        [(1, 0.5), (2, 0.9)],
        [(1, 0.5), (1, 0.5)],
        [(1.0, 0.0), (2.0, 0.5), (3.0, 1.0)],
        [(1.0, 0.0), (3.0, 0.25), (4.0, 1.0)],
    ],
)
def test_nothing_above_the_chord_is_no_knee(pairs: list[tuple[float, float]]) -> None:
    """Neither one nor two points have one, nor a line, nor a bend the other way."""
    assert frontier(*pairs).knee is None


def test_of_two_equal_knees_the_faster_counts() -> None:
    """Heights of 0.5 and 0.5: the first is taken."""
    knee = frontier((1.0, 0.0), (2.0, 0.75), (3.0, 1.0), (5.0, 1.0)).knee
    assert knee is not None
    assert knee.name == "1"


def test_nothing_and_no_time_are_refused() -> None:
    """A frontier needs something to compare, and latencies above 0."""
    with pytest.raises(PerfsuiteError, match="nothing to compare"):
        pareto_frontier([])
    for latency_s in (0.0, -1.0, math.nan):
        with pytest.raises(PerfsuiteError, match="0 takes"):
            frontier((latency_s, 0.5))
