"""What two files of llama.cpp's own benchmarks say of two builds, by the rule of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from statistics import median
from typing import TypeAlias

from perfsuite.records.benchmark_files import TimedTest
from perfsuite.records.outcome import LEAST_PAIRS, Outcome
from perfsuite.units import format_count
from perfsuite.verdict.pairs import PairedChange, compare_pairs

#: The chance of a false alarm in the whole comparison; the tests share it equally.
FALSE_ALARM_RATIO = 0.05

#: More tests of one name than so many by so many are not looked through for those that are most alike.
_MOST_PAIRED = 1_000_000

#: Runs of one test, in the order in which they ran.
_Runs: TypeAlias = Sequence[TimedTest]
#: Runs of a file by what two runs of one test have alike.
_Tests: TypeAlias = dict[tuple[str, frozenset[tuple[str, str]]], list[TimedTest]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The change of one test."""

    name: str
    #: Machine and settings, as far as both sides have them alike.
    alike: Mapping[str, str]
    outcome: Outcome
    #: Why it is not decided; empty where it is.
    reason: str = ""
    n_pairs: int = 0
    old_ns: float | None = None
    new_ns: float | None = None
    change: PairedChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """The tests of two files: what is wrong first, then what differs in more than time, the slowest change first."""

    changes: tuple[FileChange, ...]
    #: A run of each test that the old file alone has, and the new one alone.
    old_alone: tuple[TimedTest, ...] = field(default=())
    new_alone: tuple[TimedTest, ...] = field(default=())


def judge_files(old: _Runs, new: _Runs, *, margin_ratio: float) -> FileChanges:
    """Compare the tests that both sides have.

    The k-th run of the old side and the k-th of the new one are a pair. Runs that were not taken in turn decide
    nothing: a machine that became slower between them would look the same. Tests are the same where all but time and
    build is alike. One that has no such test on the other side is INCOMPARABLE with that of its name which is most
    alike; what a tool calls wrong is INVALID.
    """
    olds, news = _by_test(old), _by_test(new)
    wrong = [key for key in dict.fromkeys((*olds, *news)) if _problem(olds, news, key)]
    changes = [
        FileChange(name=key[0], alike=dict(key[1]), outcome=Outcome.INVALID, reason=_problem(olds, news, key))
        for key in wrong
    ]
    for key in wrong:
        olds.pop(key, None)
        news.pop(key, None)
    same = [key for key in olds if key in news]
    alpha = min(0.49, FALSE_ALARM_RATIO / max(1, len(same)))
    judged = [_judged(olds.pop(key), news.pop(key), alpha, margin_ratio) for key in same]
    unlike = _unlike(olds, news, {name for name, _ in same}, alpha)
    order = (each for group in (unlike, judged) for each in sorted(group, key=_slowness, reverse=True))
    return FileChanges(
        changes=(*changes, *order),
        old_alone=tuple(runs[0] for runs in olds.values()),
        new_alone=tuple(runs[0] for runs in news.values()),
    )


def _by_test(runs: Iterable[TimedTest]) -> _Tests:
    tests: _Tests = {}
    for run in sorted(runs, key=lambda each: each.began):
        tests.setdefault((run.name, frozenset(run.identity.items())), []).append(run)
    return tests


def _problem(olds: _Tests, news: _Tests, key: tuple[str, frozenset[tuple[str, str]]]) -> str:
    sides = (("old", olds), ("new", news))
    found = (f"in the {side} file {run.problem}" for side, tests in sides for run in tests.get(key, ()) if run.problem)
    return "; ".join(dict.fromkeys(found))


def _slowness(change: FileChange) -> float:
    return change.change.estimate_ratio if change.change else 0.0


def _judged(old: _Runs, new: _Runs, alpha: float, margin_ratio: float) -> FileChange:
    pairs = list(zip(old, new, strict=False))
    change = _compared(pairs, alpha)
    outcome, reason = change.outcome(margin_ratio), ""
    if len(pairs) < LEAST_PAIRS:
        outcome, reason = Outcome.INCONCLUSIVE, f"{format_count(len(pairs), 'pair')}, too few"
    elif not math.isfinite(change.error):
        outcome, reason = Outcome.INCONCLUSIVE, "all pairs are alike to the last digit"
    elif not _in_turns(pairs):
        outcome, reason = Outcome.INCONCLUSIVE, "the runs of both sides do not alternate"
    elif outcome is Outcome.INCONCLUSIVE:
        reason = "too noisy to decide"
    return _file_change(old, new, change, outcome=outcome, reason=reason)


def _unlike(olds: _Tests, news: _Tests, same: set[str], alpha: float) -> list[FileChange]:
    """Pair what is left of both sides by name, the most alike first, and take it out of them."""
    names = {name for name, _ in olds} - same
    sides = ([[key for key in tests if key[0] == name] for tests in (olds, news)] for name in names)
    pairs = [pair for old, new in sides if len(old) * len(new) <= _MOST_PAIRED for pair in product(old, new)]
    found = []
    for old, new in sorted(pairs, key=lambda pair: len(pair[0][1] ^ pair[1][1])):
        if old in olds and new in news:
            runs = olds.pop(old), news.pop(new)
            change = _compared(list(zip(*runs, strict=False)), alpha)
            reason = _differences(runs[0][0].identity, runs[1][0].identity)
            found.append(_file_change(*runs, change, outcome=Outcome.INCOMPARABLE, reason=reason))
    return found


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name) or 'unset'} against {new.get(name) or 'unset'}" for name in names)


def _compared(pairs: Sequence[tuple[TimedTest, TimedTest]], alpha: float) -> PairedChange:
    return compare_pairs([old.time_ns or 1 for old, _ in pairs], [new.time_ns or 1 for _, new in pairs], alpha=alpha)


def _file_change(old: _Runs, new: _Runs, change: PairedChange, *, outcome: Outcome, reason: str) -> FileChange:
    theirs = new[0].identity
    return FileChange(
        name=new[0].name,
        alike={name: value for name, value in old[0].identity.items() if theirs.get(name) == value},
        outcome=outcome,
        reason=reason,
        n_pairs=change.n_pairs,
        old_ns=median(each.time_ns or 1 for each in old[: change.n_pairs]),
        new_ns=median(each.time_ns or 1 for each in new[: change.n_pairs]),
        change=change,
    )


def _in_turns(pairs: Sequence[tuple[TimedTest, TimedTest]]) -> bool:
    """Say whether each pair ended, by its times of begin, before the next began; begins are known to the second."""
    begins = [sorted((old.began, new.began)) for old, new in pairs]
    return all(before[1] <= after[0] for before, after in pairwise(begins))
