"""The rule of pairs on what others measured."""

from __future__ import annotations

import random

import pytest

from perfsuite.records.benchmark_files import TimedTest
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.judge_files import judge_files, n_pairs_needed


def runs(times_ns: list[float], *, offset_s: int, every_s: int = 2) -> list[TimedTest]:
    """Return runs that began one after the other, with time between them for the other side."""
    return [
        TimedTest(name="pp8", began=f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z", time_ns=round(time_ns))
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
    """Slower, faster and the same, in turn."""
    old, new = sides(ratio)
    (change,) = judge_files(
        {"pp8": runs(old, offset_s=0)}, {"pp8": runs(new, offset_s=1), "tg8": []}, margin_ratio=0.05
    )
    assert (change.outcome, change.n_pairs) == (outcome, 12)
    assert change.change.lower_ratio < ratio < change.change.upper_ratio


def test_one_after_the_other_decides_nothing() -> None:
    """A machine that became slower meanwhile would look the same."""
    old, new = sides(1.2)
    (change,) = judge_files({"pp8": runs(old, offset_s=0)}, {"pp8": runs(new, offset_s=300)}, margin_ratio=0.05)
    assert change.outcome is Outcome.INCONCLUSIVE
    assert "the runs of both sides do not alternate" in change.reason


def test_too_few_pairs_decide_nothing() -> None:
    """However far apart they are; so many decide at all, as the tests share the false alarms."""
    old, new = sides(2.0, n=4)
    (change,) = judge_files({"pp8": runs(old, offset_s=0)}, {"pp8": runs(new, offset_s=1)}, margin_ratio=0.05)
    assert (change.outcome, change.reason) == (Outcome.INCONCLUSIVE, "4 pairs, too few")
    assert (n_pairs_needed(1), n_pairs_needed(500)) == (5, 14)


def test_the_tests_of_a_file_share_the_false_alarms() -> None:
    """Of 200 comparisons of 20 tests that are alike, about 5 in 100 may have an alarm."""
    alarms = 0
    for round_ in range(200):
        old, new = {}, {}
        for test in range(20):
            times = sides(1.0, seed=1000 * round_ + test)
            old[str(test)], new[str(test)] = runs(times[0], offset_s=0), runs(times[1], offset_s=1)
        alarms += any(each.outcome is Outcome.REGRESSED for each in judge_files(old, new, margin_ratio=0.0))
    assert alarms <= 18  # 200 times 5 %, and three standard deviations
