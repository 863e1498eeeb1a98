"""What ``perfsuite history page`` writes: all cases over all runs as one HTML page, with change points and commits."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.history_changes import advice_by_case, all_points, commits_between, tell_left_out
from perfsuite.cli.history_texts import empty_text
from perfsuite.errors import HistoryError
from perfsuite.records.trend_point import TrendPoint
from perfsuite.report.history import HistoryReader
from perfsuite.report.page.history import ChangeMark, write_history_page
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_count


def write_page(history: HistoryReader, options: argparse.Namespace) -> int:
    """Write the page of a history; say where it is and what it shows."""
    points = all_points(history, options)
    if not points:
        raise HistoryError(empty_text(history, options))
    chosen = [each for each in points if _is_chosen(each.case_id, options.pattern)]
    if not chosen:
        raise HistoryError(
            f"{options.history}: no case is like {options.pattern!r}; 'perfsuite history cases' lists them"
        )
    tell_left_out(chosen, options)
    marks = list(_marks(chosen, options.repo))
    path = write_history_page(chosen, marks, options.output)
    measured = [each for each in chosen if each.measured_ns is not None and each.measured_ns > 0]
    n_cases, n_runs = (len({each.case_id for each in measured}), len({each.run_id for each in measured}))
    n_changes = sum(not each.is_machine for each in marks)
    told = (format_count(n_cases, "case"), format_count(n_runs, "run"), format_count(n_changes, "change point"))
    line = f"{terminal_text(str(path))}: {', '.join(told)}"
    plain = {"file": str(path), "n_cases": n_cases, "n_runs": n_runs, "n_changes": n_changes}
    give(Answer(parts=lambda: (line,), plain=lambda: plain), options)
    return 0


def _is_chosen(case_id: str, pattern: str | None) -> bool:
    """Take a pattern as ``perfsuite history cases`` does: part of an id in either case, or with * and ? all of it."""
    return pattern is None or pattern.lower() in case_id.lower() or fnmatchcase(case_id, pattern)


def _marks(points: Sequence[TrendPoint], repo: Path) -> Iterator[ChangeMark]:
    between = cache(partial(commits_between, repo))  # cases change together: git is asked once for all of them
    for _, _, advice in advice_by_case(points):
        for change in advice.changes:
            commits = between(change.before.commit, change.after.commit)
            yield ChangeMark(
                before=change.before,
                after=change.after,
                ratio=change.change.estimate_ratio,
                text=change.text,
                commits=commits.lines,
                remarks=commits.remarks,
            )
        for seam in advice.machine_changes:
            yield ChangeMark(before=seam.before, after=seam.after, ratio=seam.ratio, text=seam.text, is_machine=True)
