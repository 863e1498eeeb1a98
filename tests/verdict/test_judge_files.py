"""The rule of pairs on what others measured."""

from __future__ import annotations

import random

import pytest

from perfsuite.records.benchmark_files import TimedTest
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.judge_files import judge_files


def runs(times_ns: list[float], *, offset_s: int, every_s: int = 2, name: str = "pp8") -> list[TimedTest]:
    """Return runs that began one after the other, with time between them for the other side."""
    return [
        TimedTest(name=name, began=f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z", time_ns=round(time_ns))
        for at, time_ns in zip(range(offset_s, 3600, every_s), times_ns, strict=False)
    ]


def sides(ratio: float, *, n: int = 12, seed: int = 0) -> tuple[list[float], list[float]]:
    """Return times with 1 % of noise, the new ones slower by a ratio."""
    random_ = random.Random(seed)
    return ([1e6 * random_.gauss(1, 0.01) for _ in range(n)], [1e6 * ratio * random_.gauss(1, 0.01) for _ in range(n)])


@pytest.mark.parametrize(
    ("ratio", "outcome"), [(1.12, Outcome.REGRESSED), (0.88, Outcome.IMPROVED), (1.0, Outcome.PASS)]
)
def test_pairs_decide(ratio: float, outcome: Outcome) -> None:
    old, new = sides(ratio)
    alone = runs(old, offset_s=0, name="tg8")
    found = judge_files(runs(old, offset_s=0), [*runs(new, offset_s=1), *alone], margin_ratio=0.05)
    (change,) = found.changes
    assert (change.outcome, change.n_pairs, found.old_alone, found.new_alone) == (outcome, 12, (), (alone[0],))
    assert change.change is not None
    assert change.change.lower_ratio < ratio < change.change.upper_ratio


def test_one_after_the_other_and_too_few_pairs_decide_nothing() -> None:
    """A machine that became slower meanwhile would look the same."""
    old, new = sides(1.2)
    (change,) = judge_files(runs(old, offset_s=0), runs(new, offset_s=300), margin_ratio=0.05).changes
    assert change.outcome is Outcome.INCONCLUSIVE
    assert "the runs of both sides do not alternate" in change.reason
    old, new = sides(2.0, n=4)
    (change,) = judge_files(runs(old, offset_s=0), runs(new, offset_s=1), margin_ratio=0.05).changes
    assert (change.outcome, change.reason) == (Outcome.INCONCLUSIVE, "4 pairs, too few")


def test_the_tests_of_a_file_share_the_false_alarms() -> None:
    """Of 200 comparisons of 20 tests that are alike, about 5 in 100 may have an alarm."""
    alarms = 0
    for round_ in range(200):
        old, new = [], []
        for test in range(20):
            times = sides(1.0, seed=1000 * round_ + test)
            old += runs(times[0], offset_s=0, name=str(test))
            new += runs(times[1], offset_s=1, name=str(test))
        changes = judge_files(old, new, margin_ratio=0.0).changes
        alarms += any(each.outcome is Outcome.REGRESSED for each in changes)
    assert alarms <= 18  # 200 times 5 %, and three standard deviations
