"""Change points of a case, as advice."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName
from perfsuite.records.trend_point import TrendPoint
from perfsuite.verdict.change_points import Confidence, find_changes

CASE = "phase/smollm2-135m-q8_0/siso/decode"
WEIGHTS = {"memory": 1.0}


def point(night: int, time_ns: float, memory_ns: int | None = None) -> TrendPoint:
    """A night's run."""
    return TrendPoint(
        run_id=f"run-{night}",
        started_at=datetime(2026, 3, 1, 2, tzinfo=timezone.utc) + timedelta(days=night),
        device="host",
        case_id=CASE,
        outcome=Outcome.PASS,
        measured_ns=round(time_ns),
        samples_ns=(),
        expected_ns=None,
        baseline_ns=None,
        sentinels_ns={} if memory_ns is None else {"memory": memory_ns},
        fingerprint={"soc": "one"},
        fingerprint_digest="one",
        commit=None,
        engine=None,
    )


def trend(ratios: Sequence[float], memory: Sequence[float] | None = None, spread: float = 0.005) -> list[TrendPoint]:
    """Nights of 5 ms times these ratios, with so much noise, and the sentinel's likewise without."""
    chance = random.Random(1)
    return [
        point(night, 5e6 * ratio * math.exp(chance.gauss(0.0, spread)), memory and round(1e6 * memory[night]))
        for night, ratio in enumerate(ratios)
    ]


STEP = [1.0] * 20 + [1.06] * 10


def test_a_change_says_between_which_runs_and_how_much() -> None:
    """The runs on either side, both levels, the ratio, and how sure it is."""
    (change,) = find_changes(trend(STEP), WEIGHTS).changes
    assert (change.before.run_id, change.after.run_id) == ("run-19", "run-20")
    assert change.confidence is Confidence.HIGH
    assert change.sentinel is None
    assert change.text.startswith("5.0")
    assert "high confidence, 20 nights before, 10 since" in change.text


def test_a_change_that_may_be_small_is_told_so() -> None:
    """Where the nearest bound is below what would be told, confidence is moderate."""
    (change,) = find_changes(trend([1.0] * 20 + [1.035] * 10, spread=0.015), WEIGHTS).changes
    assert change.confidence is Confidence.MODERATE


def test_the_drift_of_the_sentinel_is_divided_out() -> None:
    """A level that the sentinel has too is the machine's; a level that only the sentinel hides is found."""
    assert find_changes(trend(STEP, memory=STEP), WEIGHTS).changes == ()
    (change,) = find_changes(trend([1.0] * 30, memory=STEP), WEIGHTS).changes
    assert change.change.upper_ratio < 1.0
    assert "the memory sentinel's drift divided out" in change.text


def test_the_drift_is_left_in_where_it_is_not_known() -> None:
    """One night without a sentinel, or a device without weights, and nothing is divided out."""
    points = trend(STEP, memory=STEP)
    points[3] = replace(points[3], sentinels_ns={})
    assert [each.sentinel for each in find_changes(points, WEIGHTS).changes] == [None]
    assert [each.sentinel for each in find_changes(trend(STEP, memory=STEP), {}).changes] == [None]


def test_another_fingerprint_begins_a_new_series() -> None:
    """A change of what was measured on is told as such, with its fields, and is no change point."""
    points = [
        replace(each, fingerprint={"soc": "two"}, fingerprint_digest="two") if night >= 20 else each
        for night, each in enumerate(trend(STEP))
    ]
    advice = find_changes(points, WEIGHTS)
    assert advice.changes == ()
    (told,) = advice.machine_changes
    assert told.differences == ("soc 'one', now 'two'",)
    assert 1.05 < told.ratio < 1.07
    assert "another fingerprint, so a new series (+" in told.text
    assert (advice.n_nights, advice.n_last_nights) == (30, 10)


def test_fingerprints_that_alternate_are_series_of_their_own() -> None:
    """Two settings that are measured night by night are no change; each series finds its own."""
    points = trend([1.0 if night % 2 else 1.5 for night in range(40)])
    mixed = [
        each if night % 2 else replace(each, fingerprint={"soc": "two"}, fingerprint_digest="two")
        for night, each in enumerate(points)
    ]
    advice = find_changes(mixed, WEIGHTS)
    assert (advice.changes, advice.machine_changes) == ((), ())


def test_what_was_not_measured_properly_is_no_night() -> None:
    """Runs that were slowed down or in pairs, invalid or impossible cases, and runs without a time are left out."""
    points = trend([1.0] * 40)
    spoilt = (
        {"is_injected": True},
        {"against": "build/other"},
        {"outcome": Outcome.INVALID},
        {"outcome": Outcome.IMPOSSIBLE},
        {"measured_ns": None},
    )
    for night in range(30, 40):
        points[night] = replace(points[night], **{"measured_ns": 9_000_000, **spoilt[night % len(spoilt)]})  # type: ignore[arg-type]
    advice = find_changes(points, WEIGHTS)
    assert (advice.changes, advice.n_nights) == ((), 30)


def test_no_runs_have_no_changes() -> None:
    """Nothing is told of nothing."""
    advice = find_changes((), WEIGHTS)
    assert (advice.changes, advice.machine_changes, advice.n_nights, advice.n_last_nights) == ((), (), 0, 0)


def of_board(point: TrendPoint, identity: str, *, is_linked: bool = True) -> TrendPoint:
    """A run on one of several boards of a kind."""
    return replace(point, board=BoardName(identity=identity, hostname="shelf", is_linked=is_linked))


def test_boards_of_a_kind_are_series_of_their_own() -> None:
    """A board that is 8 % slower is no change, whether they take turns or one was busy for a while."""
    for is_slow in ([night % 2 for night in range(60)], [10 <= night < 30 or night == 40 for night in range(60)]):
        points = trend([1.08 if slow else 1.0 for slow in is_slow])
        mixed = [of_board(each, "b" if slow else "a") for each, slow in zip(points, is_slow, strict=True)]
        advice = find_changes(mixed, WEIGHTS)
        assert (advice.changes, advice.machine_changes, advice.n_nights) == ((), (), 60)
        assert advice.n_last_nights in (30, 39)


def test_a_change_on_one_of_two_boards_is_found() -> None:
    """What slows one board down is told between its own runs."""
    points = [each for each in trend([1.0] * 60) for _ in "ab"]
    slower = [round((each.measured_ns or 0) * 1.06) for each in points]
    mixed = [
        of_board(replace(each, measured_ns=slower[place]) if place >= 80 and place % 2 else each, "ab"[place % 2])
        for place, each in enumerate(points)
    ]
    (change,) = find_changes(mixed, WEIGHTS).changes
    assert {change.before.kept_by, change.after.kept_by} == {"b"}
    assert change.after.run_id == "run-40"


def test_machines_of_a_kind_that_are_not_reached_over_a_link_share_a_series() -> None:
    """CI machines that have another identity each night are one series, in which a change is found."""
    points = [of_board(each, f"machine-{place}", is_linked=False) for place, each in enumerate(trend(STEP))]
    assert len(find_changes(points, WEIGHTS).changes) == 1


def test_a_board_in_the_place_of_another_is_told() -> None:
    """It begins a series, with both names; while the old one goes on, nothing is told."""
    points = trend(STEP)
    replaced = [of_board(each, "b" if night >= 20 else "a") for night, each in enumerate(points)]
    (told,) = find_changes(replaced, WEIGHTS).machine_changes
    assert told.differences == ("board a (shelf), now b (shelf)",)
    assert told.text.startswith("another board, so a new series (+")
    replaced[-1] = of_board(points[-1], "a")
    assert find_changes(replaced, WEIGHTS).machine_changes == ()


def test_one_run_of_a_board_that_joins_others_replaces_none() -> None:
    """It may have been the last of its night; with a second one before any of theirs, it has replaced them."""
    points = trend([1.0] * 62)
    pool = [of_board(each, "ab"[night % 2]) for night, each in enumerate(points[:60])]
    assert find_changes([*pool, of_board(points[60], "c")], WEIGHTS).machine_changes == ()
    (told,) = find_changes([*pool, *(of_board(each, "c") for each in points[60:])], WEIGHTS).machine_changes
    assert told.differences == ("board b (shelf), now c (shelf)",)


def test_a_series_that_another_replaced_does_not_go_on() -> None:
    """Runs that older versions made over a link do not count, nor those of a pool whose boards were all exchanged."""
    points = trend([1.0] * 63)
    mixed = [of_board(each, "a", is_linked=night >= 60) for night, each in enumerate(points)]
    assert find_changes(mixed, WEIGHTS).n_last_nights == 3
    exchanged = [of_board(each, "c" if night >= 60 else "ab"[night % 2]) for night, each in enumerate(points)]
    assert find_changes(exchanged, WEIGHTS).n_last_nights == 3


def test_a_board_that_left_the_pool_does_not_go_on() -> None:
    """Once another one has had runs enough to tell by itself; until then it may come back."""
    points = trend([1.0] * 60)

    def last_nights(left_at: int) -> int:
        taken = ["b" if night < left_at and night != 2 else "a" for night in range(60)]
        return find_changes([of_board(*each) for each in zip(points, taken, strict=True)], WEIGHTS).n_last_nights

    assert last_nights(40) == 21
    assert last_nights(55) == 54


def test_a_change_of_a_boards_fingerprint_is_told_while_others_go_on() -> None:
    """The board's own runs before and after it are compared, not those of the pool."""
    mixed = [of_board(each, "ab"[night % 2]) for night, each in enumerate(trend([1.0] * 40))]
    changed = [
        replace(each, fingerprint={"soc": "two"}, fingerprint_digest="two") if night >= 20 and night % 2 else each
        for night, each in enumerate(mixed)
    ]
    (told,) = find_changes(changed, WEIGHTS).machine_changes
    assert (told.before.kept_by, told.after.kept_by, told.differences) == ("b", "b", ("soc 'one', now 'two'",))
