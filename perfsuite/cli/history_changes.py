"""``perfsuite history changes`` and ``page``: change points as advice, by the runs between which they lie."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from perfsuite.cli.answer import Answer, fields_of, give
from perfsuite.cli.history_actions import case_points, commit_text, empty_text, place_text
from perfsuite.device.profile import find_profile
from perfsuite.errors import DeviceError, HistoryError
from perfsuite.records.run_origin import Commit
from perfsuite.records.trend_point import TrendPoint, has_boards
from perfsuite.report.history import HistoryReader, trend_of
from perfsuite.report.page.history import ChangeMark, write_history_page
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_change, format_count
from perfsuite.verdict.change_points import ChangeAdvice, ChangePoint, MachineChange, find_changes
from perfsuite.verdict.steps import STANDARD_STEPS

_LIMIT_S = 10.0
_MOST_COMMITS = 20
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitsBetween:
    """Commits after one run's and up to another's, the newest first; or why they are not known."""

    #: ``<short id> <subject>``.
    lines: tuple[str, ...] = ()
    #: What else is to be said, each in a few words.
    remarks: tuple[str, ...] = ()


def commits_between(repo: Path, old: Commit | None, new: Commit | None) -> CommitsBetween:
    """Ask git for the commits between those of two runs; what is not known is said, and never an error."""
    if old is None or new is None:
        return CommitsBetween(remarks=(f"unknown, as {'both runs' if old is new else 'one run'} told none",))
    dirty = tuple(
        f"the {name} run's sources differed from {commit.sha[:10]}"
        for name, commit in (("older", old), ("newer", new))
        if commit.is_dirty
    )
    if old.sha == new.sha:
        return CommitsBetween(remarks=(f"both runs are of {new.sha[:10]}", *dirty))
    lines, remark = _log(repo, old.sha, new.sha)
    return CommitsBetween(lines=lines, remarks=(*([remark] if remark else []), *dirty))


def _log(repo: Path, old: str, new: str) -> tuple[tuple[str, ...], str]:
    if not (_SHA.fullmatch(old) and _SHA.fullmatch(new)):
        return (), f"commits {old!r} and {new!r} are no ids of git"
    named = f"{old[:10]}..{new[:10]}"
    command = ["git", "-C", str(repo), "log", "--oneline", "--no-decorate", "--no-color", f"-{_MOST_COMMITS + 1}"]
    try:
        words = [*command, f"{old}..{new}", "--"]
        told = subprocess.run(words, capture_output=True, timeout=_LIMIT_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"{named}: git cannot be asked ({type(error).__name__})"
    if told.returncode:
        return (), f"{named} is unknown in {repo.resolve()}; name its repository with --repo"
    lines = tuple(told.stdout.decode("utf-8", "replace").splitlines())
    if not lines:
        return (), f"{named}: the newer run is of an older commit, or of another branch's"
    return lines[:_MOST_COMMITS], f"{named}: and more" if len(lines) > _MOST_COMMITS else ""


#: Tells the commits between those of two runs.
Between: TypeAlias = Callable[[Commit | None, Commit | None], CommitsBetween]

#: A case, its device, and what is reported of it.
CaseAdvice: TypeAlias = tuple[str, str, ChangeAdvice]

_ADVICE = "advice: no outcome and no exit code rests on it; docs/history.md says how sure it is"

#: Cases that are told by name at each seam, the largest changes first.
_MOST_CASES = 12
#: From this share of a device's cases on, a change at one seam is the machine's or the build's.
_UNIFORM_SHARE, _LEAST_UNIFORM = 0.5, 5


def answer_changes(history: HistoryReader, options: argparse.Namespace) -> int:
    """Tell where cases changed over the runs of a history."""
    points = _all_points(history, options) if options.case_id is None else case_points(history, options)
    _tell_left_out(points, options)
    return tell_changes(points, options, empty="" if points else empty_text(history, options))


def _all_points(history: HistoryReader, options: argparse.Namespace) -> Sequence[TrendPoint]:
    return trend_of(history, device=options.device, board=options.board, last=options.last)


def _tell_left_out(points: Sequence[TrendPoint], options: argparse.Namespace) -> None:
    """Count on standard error the times in which no change can be looked for."""
    if n_without := sum(point.measured_ns is not None and point.measured_ns <= 0 for point in points):
        times = format_count(n_without, "time")
        print(f"perfsuite: {terminal_text(str(options.history))}: {times} of 0 ns or less; left out", file=sys.stderr)


def tell_changes(points: Sequence[TrendPoint], options: argparse.Namespace, *, empty: str) -> int:
    """Print where cases changed, by device and time, with the commits in between."""
    advice, names_boards = _advice_by_case(points), has_boards(points)
    between = cache(partial(commits_between, options.repo))  # cases change together: git is asked once for all of them
    lines = _lines(advice, between, names_boards=names_boards) if advice else [terminal_text(empty)]
    return give(Answer(parts=lines, plain=lambda: [_plain_advice(each, between) for each in advice]), options)


def answer_page(history: HistoryReader, options: argparse.Namespace) -> int:
    """Write the page of a history; say where it is and what it shows."""
    points, pattern = _all_points(history, options), options.pattern
    if not points:
        raise HistoryError(empty_text(history, options))
    # as 'perfsuite history cases': part of an id in either case, or with * and ? all of it
    chosen = [
        each
        for each in points
        if pattern is None or pattern.lower() in each.case_id.lower() or fnmatchcase(each.case_id, pattern)
    ]
    if not chosen:
        raise HistoryError(f"{options.history}: no case is like {pattern!r}; 'perfsuite history cases' lists them")
    _tell_left_out(chosen, options)
    marks = list(_marks(chosen, options.repo))
    path = write_history_page(chosen, marks, options.output)
    measured = [each for each in chosen if each.measured_ns is not None and each.measured_ns > 0]
    n_cases, n_runs = (len({getattr(each, name) for each in measured}) for name in ("case_id", "run_id"))
    n_changes = sum(not each.is_machine for each in marks)
    told = (format_count(n_cases, "case"), format_count(n_runs, "run"), format_count(n_changes, "change point"))
    plain = {"file": str(path), "n_cases": n_cases, "n_runs": n_runs, "n_changes": n_changes}
    return give(Answer(parts=[f"{terminal_text(str(path))}: {', '.join(told)}"], plain=plain), options)


def _marks(points: Sequence[TrendPoint], repo: Path) -> Iterator[ChangeMark]:
    between = cache(partial(commits_between, repo))
    for _, _, advice in _advice_by_case(points):
        for change in advice.changes:
            commits = between(change.before.commit, change.after.commit)
            yield ChangeMark(
                **fields_of(change, "before", "after", "text"),
                ratio=change.change.estimate_ratio,
                commits=commits.lines,
                remarks=commits.remarks,
            )
        for seam in advice.machine_changes:
            yield ChangeMark(**fields_of(seam, "before", "after", "ratio", "text"), is_machine=True)


def _advice_by_case(points: Sequence[TrendPoint]) -> list[CaseAdvice]:
    """Look for changes in the runs of each case on each device."""
    by_case = groupby(points, key=lambda point: (point.case_id, point.device))
    return [(*key, find_changes(tuple(of_case), _weights(key[1]))) for key, of_case in by_case]


@cache
def _weights(device: str) -> Mapping[str, float]:
    """Return how far a device's times follow its sentinels; of a device without a profile nothing is known."""
    try:
        return find_profile(device).sentinel_weight_ratio
    except DeviceError:
        return {}


def _lines(advice: Sequence[CaseAdvice], between: Between, *, names_boards: bool) -> Iterator[str]:
    for change, case_ids in _machine_changes(advice):
        seam_text = _seam_text(change.before, change.after, names_board=names_boards)
        yield f"{seam_text}, {format_count(len(case_ids), 'case')}"
        yield f"  {terminal_text(change.text)}\n"
    seams = _seams(advice)
    for changes in seams:
        before, after = changes[0].before, changes[0].after
        n_cases = sum(device == after.device for _, device, _ in advice)
        yield _seam_text(before, after, names_board=names_boards)
        yield from _seam_lines(changes, n_cases, between(before.commit, after.commit))
    if not seams:
        yield _nothing_text(advice)
    yield _ADVICE


def _seam_lines(changes: Sequence[ChangePoint], n_cases: int, commits: CommitsBetween) -> Iterator[str]:
    for change in changes[:_MOST_CASES]:
        yield f"  {terminal_text(change.after.case_id)}\n    {change.text}"
    if len(changes) > _MOST_CASES:
        yield f"  and {format_count(len(changes) - _MOST_CASES, 'case')} more"
    if len(changes) >= max(_LEAST_UNIFORM, _UNIFORM_SHARE * n_cases):
        yield f"  {len(changes)} of {n_cases} cases changed here: look at the machine and the build first"
    yield from (f"  commit {terminal_text(line)}" for line in commits.lines)
    yield from (f"  commits: {terminal_text(line)}" for line in commits.remarks)
    yield ""


def _nothing_text(advice: Sequence[CaseAdvice]) -> str:
    n_nights = max((each.n_last_nights for _, _, each in advice), default=0)
    least = STANDARD_STEPS.least_series
    if n_nights < least:
        return f"too few runs: {n_nights} of one fingerprint and board, and change points need at least {least}"
    cases, after, before = format_count(len(advice), "case"), STANDARD_STEPS.least_nights, STANDARD_STEPS.least_before
    return (
        f"no change point in {cases}; a change shows once {after} runs have followed it where {before} precede it, "
        "and later where fewer do"
    )


def _seams(advice: Sequence[CaseAdvice]) -> list[list[ChangePoint]]:
    """Group the changes by the runs between which they lie, in the order of time; the largest of each first."""
    found: dict[tuple[str, str, str], list[ChangePoint]] = defaultdict(list)
    for _, device, each in advice:
        for change in each.changes:
            found[device, change.before.run_id, change.after.run_id].append(change)
    for changes in found.values():
        changes.sort(key=lambda change: -abs(change.change.estimate_ratio - 1.0))
    return sorted(found.values(), key=lambda changes: (changes[0].after.started_at, changes[0].after.device))


def _machine_changes(advice: Sequence[CaseAdvice]) -> list[tuple[MachineChange, tuple[str, ...]]]:
    """Return each change of the machine once, with the cases that it parts."""
    found: dict[tuple[str, str, tuple[str, ...]], list[tuple[str, MachineChange]]] = defaultdict(list)
    for case_id, _, each in advice:
        for change in each.machine_changes:
            found[change.before.run_id, change.after.run_id, change.differences].append((case_id, change))
    return [
        # one for all, with the middle one's change of time
        (replace(told[0][1], ratio=median(each.ratio for _, each in told)), tuple(case_id for case_id, _ in told))
        for told in found.values()
    ]


def _seam_text(before: TrendPoint, after: TrendPoint, *, names_board: bool) -> str:
    runs = " and ".join(
        f"{each.started_at:%Y-%m-%d %H:%M} ({commit_text(each.commit) or 'no commit'})" for each in (before, after)
    )
    place = place_text(after, names_board=names_board)
    return f"{terminal_text(place)}: between the runs of {terminal_text(runs)}"


def _plain_advice(told: CaseAdvice, between: Between) -> dict[str, Any]:
    case_id, device, advice = told
    return {
        "case_id": case_id,
        "device": device,
        "n_runs": advice.n_nights,
        "n_runs_of_last_fingerprint": advice.n_last_nights,
        "changes": [_plain_change(change, between) for change in advice.changes],
        "fingerprint_changes": [
            {**_plain_seam(each.before, each.after), "differences": list(each.differences), "change_ratio": each.ratio}
            for each in advice.machine_changes
        ],
    }


def _plain_change(change: ChangePoint, between: Between) -> dict[str, Any]:
    commits = between(change.before.commit, change.after.commit)
    return {
        **_plain_seam(change.before, change.after),
        **fields_of(change, "old_ns", "new_ns", "sentinel"),
        "change_ratio": change.change.estimate_ratio,
        **fields_of(change.change, "lower_ratio", "upper_ratio"),
        "n_runs_before": change.n_before,
        "n_runs_after": change.n_after,
        "confidence": change.confidence.value,
        "told": f"{format_change(change.change.estimate_ratio)}, {change.confidence.value}",
        "commits": list(commits.lines),
        "remarks": list(commits.remarks),
        "is_advice": True,
    }


def _plain_seam(before: TrendPoint, after: TrendPoint) -> dict[str, Any]:
    return {
        f"{name}_{what}": value
        for name, point in (("before", before), ("after", after))
        for what, value in (
            ("run_id", point.run_id),
            ("started_at", point.started_at.isoformat()),
            ("commit", point.commit.sha if point.commit else None),
            ("board", point.kept_by),
        )
    }
