"""``perfsuite history runs``, ``cases``, ``trend`` and ``sql``: what is there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from perfsuite.cli.history_tables import Sheet, answer, cases_sheet, runs_sheet, show_trend
from perfsuite.cli.history_texts import check_last, empty_text, no_case_text, tell_skipped
from perfsuite.errors import HistoryError
from perfsuite.records.trend_point import TrendPoint
from perfsuite.report.history import cases_of, open_history, runs_of, trend_of
from perfsuite.report.history.own_query import ask

#: The most rows and seconds that may be asked for.
_MOST_ROWS, _MOST_LIMIT_S = 100_000_000, 86_400.0


def list_runs(options: argparse.Namespace) -> int:
    """List the runs."""
    check_last(options)
    with open_history(options.history) as history:
        runs = runs_of(history, device=options.device, board=options.board, last=options.last)
        tell_skipped(history.skipped)
    return answer(runs_sheet(runs), options, empty=empty_text(options))


def list_cases(options: argparse.Namespace) -> int:
    """List the cases."""
    with open_history(options.history) as history:
        cases = cases_of(history, pattern=options.pattern, device=options.device, board=options.board)
        tell_skipped(history.skipped)
    sought = f"{options.history}: holds no case that fits {options.pattern!r}; 'perfsuite history cases' lists all"
    return answer(cases_sheet(cases), options, empty=sought if options.pattern else empty_text(options))


def tell_trend(options: argparse.Namespace) -> int:
    """Show one case over all runs, and draw it where a file is named."""
    check_last(options)
    if options.plot is not None:
        from perfsuite.report.plots.formats import format_of  # what draws is slow to import

        format_of(options.plot)
    with open_history(options.history) as history:
        points = trend_of(history, options.case_id, device=options.device, board=options.board, last=options.last)
        tell_skipped(history.skipped)
    if not points:
        raise HistoryError(no_case_text(options))
    show_trend(points, options)
    if options.plot is not None:
        _draw_trend(points, options)
    return 0


def answer_query(options: argparse.Namespace) -> int:
    """Answer a SELECT of somebody's own."""
    if not 1 <= options.rows <= _MOST_ROWS:
        raise HistoryError(f"--rows={options.rows}: expected 1 to {_MOST_ROWS:,}")
    if not 0.0 < options.limit_s <= _MOST_LIMIT_S:
        raise HistoryError(f"--limit-s={options.limit_s:g}: expected more than 0 and at most {_MOST_LIMIT_S:,.0f}")
    answered = ask(options.history, options.query, most_rows=options.rows, limit_s=options.limit_s)
    tell_skipped(answered.skipped)
    if answered.is_cut:
        print(
            f"perfsuite: sql: more than {options.rows:,} rows; these are the first; --rows N gives more",
            file=sys.stderr,
        )
    return answer(Sheet(columns=answered.columns, rows=answered.rows), options, empty="no rows")


def _draw_trend(points: Sequence[TrendPoint], options: argparse.Namespace) -> None:
    from perfsuite.report.history.chart import trend_chart
    from perfsuite.report.plots.picture import write_picture

    write_picture(trend_chart(points), options.plot)
    print(f"{options.plot}: drawn", file=sys.stderr if options.json or options.csv else sys.stdout)
