"""Change points of a case, as advice."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName
from perfsuite.records.trend_point import TrendPoint
from perfsuite.verdict.change_points import Confidence, find_changes

CASE = "phase/smollm2-135m-q8_0/siso/decode"
WEIGHTS = {"memory": 1.0}


def point(night: int, time_ns: float, memory_ns: int | None = None) -> TrendPoint:
    return TrendPoint(
        run_id=f"run-{night}",
        started_at=datetime(2026, 3, 1, 2, tzinfo=timezone.utc) + timedelta(days=night),
        device="host",
        case_id=CASE,
        outcome=Outcome.PASS,
        measured_ns=round(time_ns),
        sentinels_ns={} if memory_ns is None else {"memory": memory_ns},
        fingerprint={"soc": "one"},
        fingerprint_digest="one",
    )


def trend(ratios: Sequence[float], memory: Sequence[float] | None = None, spread: float = 0.005) -> list[TrendPoint]:
    """Nights of 5 ms times these ratios, with so much noise, and the sentinel's likewise without."""
    chance = random.Random(1)
    return [
        point(night, 5e6 * ratio * math.exp(chance.gauss(0.0, spread)), memory and round(1e6 * memory[night]))
        for night, ratio in enumerate(ratios)
    ]


def other(point: TrendPoint) -> TrendPoint:
    return replace(point, fingerprint={"soc": "two"}, fingerprint_digest="two")


STEP = [1.0] * 20 + [1.06] * 10


def test_a_change_says_between_which_runs_and_how_much() -> None:
    (change,) = find_changes(trend(STEP), WEIGHTS).changes
    assert (change.before.run_id, change.after.run_id) == ("run-19", "run-20")
    assert change.confidence is Confidence.HIGH
    assert change.sentinel is None
    assert change.text.startswith("5.0")
    assert "high confidence, 20 nights before, 10 since" in change.text
    (change,) = find_changes(trend([1.0] * 20 + [1.035] * 10, spread=0.015), WEIGHTS).changes
    assert change.confidence is Confidence.MODERATE


def test_the_drift_of_the_sentinel_is_divided_out() -> None:
    assert find_changes(trend(STEP, memory=STEP), WEIGHTS).changes == ()
    (change,) = find_changes(trend([1.0] * 30, memory=STEP), WEIGHTS).changes
    assert change.change.upper_ratio < 1.0
    assert "the memory sentinel's drift divided out" in change.text
    points = trend(STEP, memory=STEP)
    points[3] = replace(points[3], sentinels_ns={})
    assert [each.sentinel for each in find_changes(points, WEIGHTS).changes] == [None]
    assert [each.sentinel for each in find_changes(trend(STEP, memory=STEP), {}).changes] == [None]


def test_a_device_that_has_changed_shows() -> None:
    """Of what the sentinel moved by, no more than is ever divided out is taken from the times."""
    moved = [1.0] * 20 + [1.6] * 10
    (change,) = find_changes(trend(moved, memory=moved), {"memory": 1.0}).changes
    assert change.change.estimate_ratio == pytest.approx(1.6 / 1.3, rel=0.02)


def test_another_fingerprint_begins_a_new_series() -> None:
    """It is reported with its fields and is no change point; settings by turns find their own."""
    points = [other(each) if night >= 20 else each for night, each in enumerate(trend(STEP))]
    advice = find_changes(points, WEIGHTS)
    assert advice.changes == ()
    (reported,) = advice.machine_changes
    assert reported.differences == ("soc 'one', now 'two'",)
    assert 1.05 < reported.ratio < 1.07
    assert "another fingerprint, so a new series (+" in reported.text
    assert (advice.n_nights, advice.n_last_nights) == (30, 10)
    points = trend([1.0 if night % 2 else 1.5 for night in range(40)])
    mixed = [each if night % 2 else other(each) for night, each in enumerate(points)]
    advice = find_changes(mixed, WEIGHTS)
    assert (advice.changes, advice.machine_changes) == ((), ())


def test_what_was_not_measured_properly_is_no_night() -> None:
    """Runs that were slowed or in pairs, invalid or impossible cases, and runs without a time are left out."""
    points = trend([1.0] * 30 + [1.8] * 5)
    points[30] = replace(points[30], is_injected=True)
    points[31] = replace(points[31], against="build/other")
    points[32] = replace(points[32], outcome=Outcome.INVALID)
    points[33] = replace(points[33], outcome=Outcome.IMPOSSIBLE)
    points[34] = replace(points[34], measured_ns=None)
    advice = find_changes(points, WEIGHTS)
    assert (advice.changes, advice.n_nights) == ((), 30)
    advice = find_changes((), WEIGHTS)
    assert (advice.changes, advice.machine_changes, advice.n_nights, advice.n_last_nights) == ((), (), 0, 0)


def of_board(point: TrendPoint, identity: str, *, is_linked: bool = True) -> TrendPoint:
    return replace(point, board=BoardName(identity=identity, hostname="shelf", is_linked=is_linked))


def test_boards_of_a_kind_are_series_of_their_own() -> None:
    """A board that is 8 % slower is no change; what slows one down is found between its own runs."""
    for is_slow in ([night % 2 for night in range(60)], [10 <= night < 30 or night == 40 for night in range(60)]):
        points = trend([1.08 if slow else 1.0 for slow in is_slow])
        mixed = [of_board(each, "b" if slow else "a") for each, slow in zip(points, is_slow, strict=True)]
        advice = find_changes(mixed, WEIGHTS)
        assert (advice.changes, advice.machine_changes, advice.n_nights) == ((), (), 60)
        assert advice.n_last_nights in (30, 39)
    points = [each for each in trend([1.0] * 60) for _ in "ab"]
    slower = [round((each.measured_ns or 0) * 1.06) for each in points]
    mixed = [
        of_board(replace(each, measured_ns=slower[place]) if place >= 80 and place % 2 else each, "ab"[place % 2])
        for place, each in enumerate(points)
    ]
    (change,) = find_changes(mixed, WEIGHTS).changes
    assert ({change.before.kept_by, change.after.kept_by}, change.after.run_id) == ({"b"}, "run-40")


def test_machines_of_a_kind_that_are_not_reached_over_a_link_share_a_series() -> None:
    """CI machines that have another identity each night are one series, in which a change is found."""
    points = [of_board(each, f"machine-{place}", is_linked=False) for place, each in enumerate(trend(STEP))]
    assert len(find_changes(points, WEIGHTS).changes) == 1


def test_a_board_in_the_place_of_others_is_reported() -> None:
    """It begins a series, with both names, unless the old ones go on or it has but one run of a night."""
    points = trend(STEP)
    replaced = [of_board(each, "b" if night >= 20 else "a") for night, each in enumerate(points)]
    (reported,) = find_changes(replaced, WEIGHTS).machine_changes
    assert reported.differences == ("board a (shelf), now b (shelf)",)
    assert reported.text.startswith("another board, so a new series (+")
    replaced[-1] = of_board(points[-1], "a")
    assert find_changes(replaced, WEIGHTS).machine_changes == ()
    points = trend([1.0] * 62)
    pool = [of_board(each, "ab"[night % 2]) for night, each in enumerate(points[:60])]
    assert find_changes([*pool, of_board(points[60], "c")], WEIGHTS).machine_changes == ()
    (reported,) = find_changes([*pool, *(of_board(each, "c") for each in points[60:])], WEIGHTS).machine_changes
    assert reported.differences == ("board b (shelf), now c (shelf)",)


def test_a_series_that_another_replaced_does_not_go_on() -> None:
    """Neither what older versions made, nor a board that left long enough ago for another to show changes."""
    points = trend([1.0] * 63)
    mixed = [of_board(each, "a", is_linked=night >= 60) for night, each in enumerate(points)]
    assert find_changes(mixed, WEIGHTS).n_last_nights == 3
    exchanged = [of_board(each, "c" if night >= 60 else "ab"[night % 2]) for night, each in enumerate(points)]
    assert find_changes(exchanged, WEIGHTS).n_last_nights == 3
    points = trend([1.0] * 60)

    def last_nights(left_at: int) -> int:
        taken = ["b" if night < left_at and night != 2 else "a" for night in range(60)]
        return find_changes([of_board(*each) for each in zip(points, taken, strict=True)], WEIGHTS).n_last_nights

    assert (last_nights(40), last_nights(55)) == (21, 54)


def test_a_change_of_a_boards_fingerprint_is_reported_while_others_go_on() -> None:
    mixed = [of_board(each, "ab"[night % 2]) for night, each in enumerate(trend([1.0] * 40))]
    changed = [other(each) if night >= 20 and night % 2 else each for night, each in enumerate(mixed)]
    (change,) = find_changes(changed, WEIGHTS).machine_changes
    assert (change.before.kept_by, change.after.kept_by, change.differences) == ("b", "b", ("soc 'one', now 'two'",))
