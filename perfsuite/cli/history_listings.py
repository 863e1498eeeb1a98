"""``perfsuite history runs``, ``cases``, ``trend`` and ``sql``: what is there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from perfsuite.cli.answer import Answer, Part, Records, Sheet, cell_text, check_picture, draw, give
from perfsuite.cli.history_texts import empty_text
from perfsuite.errors import HistoryError, PerfsuiteError, meant
from perfsuite.records.case import named_case
from perfsuite.records.run_origin import Commit
from perfsuite.records.trend_point import TrendPoint, has_boards
from perfsuite.report.history import HistoryCase, HistoryReader, HistoryRun, cases_of, runs_of, trend_of
from perfsuite.report.history.reader import answer_query
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_change, format_count, format_ns

_BARS = "▁▂▃▄▅▆▇█"
#: Runs that the line of bars shows, the newest.
_MOST_BARS = 60

#: What people read above the columns of listings.
_HEADINGS = {
    "started_at": "began (UTC)",
    "case_id": "case",
    "n_cases": "cases",
    "n_failed": "failed",
    "n_runs": "runs",
    "last_at": "last run (UTC)",
    "last_measured_ns": "time",
    "last_outcome": "outcome",
    "commit": "commit",
    "run_id": "run",
    "is_injected": "slowed",
}


def _named(names: str) -> dict[str, Callable[[Any], Any]]:
    return {name: attrgetter(name) for name in names.split()}


_RUN: Mapping[str, Callable[[HistoryRun], Any]] = {
    **_named("started_at device"),
    "board": lambda run: run.board.kept_by if run.board else None,
    **_named("workload n_cases n_failed"),
    "commit": lambda run: commit_text(run.commit),
    **_named("run_id against is_injected"),
}

_CASE: Mapping[str, Callable[[HistoryCase], Any]] = _named(
    "case_id device n_runs last_at last_measured_ns last_outcome"
)

_POINT: Mapping[str, Callable[[TrendPoint], Any]] = {
    **_named("case_id device run_id started_at outcome measured_ns samples_ns expected_ns baseline_ns sentinels_ns"),
    "fingerprint_digest": attrgetter("fingerprint_digest"),
    "commit_sha": lambda point: point.commit and point.commit.sha,
    "is_dirty": lambda point: point.commit and point.commit.is_dirty,
    "branch": lambda point: point.commit and point.commit.branch,
    **_named("engine is_injected against"),
    "board": lambda point: point.board and point.board.identity,
    "board_hostname": lambda point: point.board and point.board.hostname,
    "is_linked": lambda point: point.board and point.board.is_linked,
}

_SHOWN: Mapping[str, Callable[[Any], str]] = {"last_measured_ns": format_ns}


def runs_records(runs: Sequence[HistoryRun]) -> Records:
    """Return a row a run."""
    return Records.of(_RUN, runs, shown=_SHOWN, headings=_HEADINGS)


def cases_records(cases: Sequence[HistoryCase]) -> Records:
    """Return a row a case and device."""
    return Records.of(_CASE, cases, shown=_SHOWN, headings=_HEADINGS)


def trend_answer(points: Sequence[TrendPoint]) -> Answer:
    """Return one case over its runs, for people device by device, and board by board where there are several."""
    records = partial(Records.of, _POINT, points, shown={}, headings={})
    return Answer(parts=lambda: _trend_parts(points), plain=lambda: records().plain(), csv=lambda: records().csv())


def spark_line(times_ns: Sequence[int | None]) -> str:
    """Draw times as a line of bars between the least and the most of them; a gap where nothing was measured."""
    newest = times_ns[-_MOST_BARS:]
    known = [time_ns for time_ns in newest if time_ns is not None]
    if not known:
        return ""
    least, reach = min(known), max(max(known) - min(known), 1)
    bars = (" " if each is None else _BARS[(each - least) * (len(_BARS) - 1) // reach] for each in newest)
    return f"{''.join(bars)}  {format_ns(least)} to {format_ns(max(known))}"


def place_text(point: TrendPoint, *, names_board: bool) -> str:
    """Return what was measured: the device, and which board of its kind where these differ."""
    if not names_board:
        return point.device
    board = point.board if point.kept_by else None
    return f"{point.device}, board {board.text}" if board else f"{point.device}, without a board's name"


def commit_text(commit: Commit | None) -> str | None:
    """Return the beginning of a commit's id, with a + where tracked files differed from it."""
    return f"{commit.sha[:10]}{'+' if commit.is_dirty else ''}" if commit else None


def _trend_parts(points: Sequence[TrendPoint]) -> Iterator[Part]:
    names_boards = has_boards(points)
    by_board = sorted(points, key=lambda point: (point.device, point.kept_by or ""))
    for _, of_board in groupby(by_board, key=lambda point: (point.device, point.kept_by)):
        nights = list(of_board)
        place = terminal_text(place_text(nights[-1], names_board=names_boards))
        yield f"{terminal_text(nights[0].case_id)} on {place}, {format_count(len(nights), 'run')}"
        yield f"{spark_line([night.measured_ns for night in nights])}\n"
        yield _trend_sheet(nights)


def _trend_sheet(nights: Sequence[TrendPoint]) -> Sheet:
    rows = []
    for older, night in zip([None, *nights], nights, strict=False):
        ratio = night.measured_ns / older.measured_ns if older and older.measured_ns and night.measured_ns else None
        outcome = f"{night.outcome.value} (slowed on purpose)" if night.is_injected else night.outcome.value
        cells = (format_ns(night.measured_ns), format_change(ratio), outcome, commit_text(night.commit))
        rows.append((cell_text(night.started_at), *cells, (night.fingerprint_digest or "-")[:8]))
    return Sheet(("run began (UTC)", ">measured", ">to run before", "outcome", "commit", "fingerprint"), rows)


def list_runs(history: HistoryReader, options: argparse.Namespace) -> int:
    """List the runs."""
    runs = runs_of(history, device=options.device, board=options.board, last=options.last)
    give(Answer.of(runs_records(runs), empty="" if runs else empty_text(history, options)), options)
    return 0


def list_cases(history: HistoryReader, options: argparse.Namespace) -> int:
    """List the cases."""
    cases = cases_of(history, pattern=options.pattern, device=options.device, board=options.board)
    give(Answer.of(cases_records(cases), empty="" if cases else _no_cases_text(history, options)), options)
    return 0


def _no_cases_text(history: HistoryReader, options: argparse.Namespace) -> str:
    known = [each.case_id for each in cases_of(history, device=options.device, board=options.board)]
    if not known or not options.pattern:
        return empty_text(history, options)
    parts = {part for each in known for part in each.split("/")}
    alike = meant(options.pattern, (*known, *parts)) or "; 'perfsuite history cases' lists all"
    return f"{options.history}: holds no case that fits {options.pattern!r}{alike}"


def tell_trend(history: HistoryReader, options: argparse.Namespace) -> int:
    """Show one case over all runs, and draw it where a file is named."""
    check_picture(options.plot)
    points = case_points(history, options)
    give(trend_answer(points), options)
    if options.plot is not None:
        from perfsuite.report.history.queries import trend_chart

        draw(trend_chart(points), options.plot)
        print(f"{options.plot}: drawn", file=sys.stderr if options.json or options.csv else sys.stdout)
    return 0


def case_points(history: HistoryReader, options: argparse.Namespace) -> tuple[TrendPoint, ...]:
    """Return the runs of the case that is named, by its id or by an end of it that no other case has.

    Raises HistoryError: no case is meant, or several are.
    """
    chosen = {"device": options.device, "board": options.board}
    points = trend_of(history, options.case_id, **chosen, last=options.last)
    if points:
        return points
    known = [each.case_id for each in cases_of(history, **chosen)]
    if not known:
        raise HistoryError(empty_text(history, options))
    try:
        case_id = named_case(options.case_id, known, f"{options.history}: CASE ")
    except PerfsuiteError as error:
        raise HistoryError(f"{error}; 'perfsuite history cases' lists all") from None
    return trend_of(history, case_id, **chosen, last=options.last)


def answer_sql(history: HistoryReader, options: argparse.Namespace) -> int:
    """Answer a SELECT of somebody's own."""
    found = answer_query(history, options.query, most_rows=options.rows, limit_s=options.limit_s)
    if found.is_cut:
        told = f"more than {options.rows:,} rows; these are the first; --rows N gives more"
        print(f"perfsuite: sql: {told}", file=sys.stderr)
    give(Answer.of(Records(columns=found.columns, rows=found.rows), empty="no rows"), options)
    return 0
