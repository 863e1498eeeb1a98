"""``perfsuite history runs``, ``cases``, ``trend`` and ``sql``: what is there."""

from __future__ import annotations

import argparse
import sys

from perfsuite.cli.answer import Answer, Records, check_picture, draw, give
from perfsuite.cli.history_tables import cases_records, runs_records, trend_answer
from perfsuite.cli.history_texts import check_last, empty_text, no_case_text, tell_skipped
from perfsuite.errors import HistoryError
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
    give(Answer.of(runs_records(runs), empty=empty_text(options)), options)
    return 0


def list_cases(options: argparse.Namespace) -> int:
    """List the cases."""
    with open_history(options.history) as history:
        cases = cases_of(history, pattern=options.pattern, device=options.device, board=options.board)
        tell_skipped(history.skipped)
    sought = f"{options.history}: holds no case that fits {options.pattern!r}; 'perfsuite history cases' lists all"
    give(Answer.of(cases_records(cases), empty=sought if options.pattern else empty_text(options)), options)
    return 0


def tell_trend(options: argparse.Namespace) -> int:
    """Show one case over all runs, and draw it where a file is named."""
    check_last(options)
    check_picture(options.plot)
    with open_history(options.history) as history:
        points = trend_of(history, options.case_id, device=options.device, board=options.board, last=options.last)
        tell_skipped(history.skipped)
    if not points:
        raise HistoryError(no_case_text(options))
    give(trend_answer(points), options)
    if options.plot is not None:
        from perfsuite.report.history.chart import trend_chart

        draw(trend_chart(points), options.plot)
        print(f"{options.plot}: drawn", file=sys.stderr if options.json or options.csv else sys.stdout)
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
        told = f"more than {options.rows:,} rows; these are the first; --rows N gives more"
        print(f"perfsuite: sql: {told}", file=sys.stderr)
    records = Records(columns=tuple(answered.columns), rows=tuple(answered.rows))
    give(Answer.of(records, empty="no rows"), options)
    return 0
