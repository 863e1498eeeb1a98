"""What two files of llama.cpp's own benchmarks say of two builds, by the rule of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from perfsuite.records.benchmark_files import TimedTest
from perfsuite.records.outcome import Outcome
from perfsuite.units import format_change, format_count
from perfsuite.verdict.signed_rank import PairedChange, compare_pairs, least_p

#: The chance of a false alarm in the whole comparison; the tests share it equally.
FALSE_ALARM_RATIO = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The change of one test."""

    name: str
    n_pairs: int
    old_ns: float
    new_ns: float
    change: PairedChange
    outcome: Outcome
    reason: str


def judge_files(
    old: Mapping[str, Sequence[TimedTest]], new: Mapping[str, Sequence[TimedTest]], *, margin_ratio: float
) -> tuple[FileChange, ...]:
    """Compare each test that both sides have, slowest change first.

    The k-th run of the old side and the k-th of the new one are a pair. Runs that were not taken in turn decide
    nothing: a machine that became slower between them would look the same.
    """
    names = [name for name in old if name in new]
    alpha = min(0.49, FALSE_ALARM_RATIO / max(1, len(names)))
    changes = (_judged(name, old[name], new[name], alpha, margin_ratio) for name in names)
    return tuple(sorted(changes, key=lambda each: -each.change.estimate_ratio))


def n_pairs_needed(n_tests: int) -> int:
    """Return how many pairs of each test can decide anything, where so many are judged at once."""
    return next(n for n in range(1, 100) if least_p(n) <= FALSE_ALARM_RATIO / max(1, n_tests))


def _judged(
    name: str, old: Sequence[TimedTest], new: Sequence[TimedTest], alpha: float, margin_ratio: float
) -> FileChange:
    pairs = list(zip(old, new, strict=False))
    sides = [each.time_ns for each, _ in pairs], [each.time_ns for _, each in pairs]
    change = compare_pairs(*sides, alpha=alpha)
    outcome, reason = change.outcome(margin_ratio), _interval(change)
    if math.isinf(change.upper_ratio):
        outcome, reason = Outcome.INCONCLUSIVE, f"{format_count(len(pairs), 'pair')}, too few"
    elif not _in_turns(pairs):
        outcome, reason = Outcome.INCONCLUSIVE, f"{reason}; the runs of both sides do not alternate"
    return FileChange(
        name=name,
        n_pairs=len(pairs),
        old_ns=median(sides[0]),
        new_ns=median(sides[1]),
        change=change,
        outcome=outcome,
        reason=reason,
    )


def _interval(change: PairedChange) -> str:
    return f"{format_change(change.lower_ratio)} to {format_change(change.upper_ratio)}"


def _in_turns(pairs: Sequence[tuple[TimedTest, TimedTest]]) -> bool:
    """Say whether each pair ended, by its times of begin, before the next began; begins are known to the second."""
    begins = [sorted((old.began, new.began)) for old, new in pairs]
    return all(before[1] <= after[0] for before, after in pairwise(begins))
