"""What ``perfsuite history`` prints: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from itertools import groupby
from typing import Any

from rich.markup import escape
from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.errors import HistoryError
from perfsuite.records.run_origin import Commit
from perfsuite.records.trend_point import TrendPoint, has_boards
from perfsuite.report.history import HistoryCase, HistoryRun
from perfsuite.report.terminal_text import folded_name, terminal_text
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
    "run_id": "run",
    "is_injected": "slowed",
}
#: Columns that no width breaks.
_UNBROKEN = ("started_at", "n_cases", "n_failed", "n_runs", "last_at", "last_measured_ns", "last_outcome", "commit")


def _folded(width: int) -> Callable[[Any], str]:
    """Return what folds a name on a terminal; what else reads the table finds names whole."""
    return lambda name: folded_name(terminal_text(str(name)), width if sys.stdout.isatty() else sys.maxsize)


_NAMES: Mapping[str, Callable[[Any], str]] = {
    "case_id": _folded(40),
    "device": _folded(24),
    "workload": _folded(24),
    "run_id": _folded(16),
    "board": _folded(16),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Rows under named columns, as JSON, CSV and tables have them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: By column: how a value is shown to people, where that is not its text.
    shown: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)


def answer(sheet: Sheet, options: argparse.Namespace, *, empty: str) -> int:
    """Print a sheet in the format that was asked for; return the exit status.

    Raises
    ------
    HistoryError
        JSON is asked for, and two columns have one name.
    """
    if options.json:
        _require_own_names(sheet.columns)
        rows = [dict(zip(sheet.columns, map(_plain, row), strict=True)) for row in sheet.rows]
        print(json.dumps(rows, indent=1, allow_nan=False))
    elif options.csv:
        print(_csv(sheet), end="")
    elif sheet.rows:
        show(_table(sheet))
    else:
        print(terminal_text(empty))
    return 0


def _require_own_names(columns: Sequence[str]) -> None:
    doubled = [name for name, count in Counter(columns).items() if count > 1]
    if doubled:
        raise HistoryError(f"--json: {doubled[0]!r} is the name of more than one column; give each its own with AS")


def runs_sheet(runs: Sequence[HistoryRun]) -> Sheet:
    """Return a row a run."""
    columns = (
        *("started_at", "device", "board", "workload", "n_cases", "n_failed", "commit", "run_id", "against"),
        "is_injected",
    )
    rows = tuple(
        (
            *(
                run.started_at,
                run.device,
                run.board.kept_by if run.board else None,
                run.workload,
                run.n_cases,
                run.n_failed,
            ),
            *(commit_text(run.commit), run.run_id, run.against, run.is_injected),
        )
        for run in runs
    )
    return Sheet(columns=columns, rows=rows, shown=_NAMES)


def cases_sheet(cases: Sequence[HistoryCase]) -> Sheet:
    """Return a row a case and device."""
    rows = tuple(
        (each.case_id, each.device, each.n_runs, each.last_at, each.last_measured_ns, each.last_outcome)
        for each in cases
    )
    columns = ("case_id", "device", "n_runs", "last_at", "last_measured_ns", "last_outcome")
    return Sheet(columns=columns, rows=rows, shown={**_NAMES, "last_measured_ns": format_ns})


def show_trend(points: Sequence[TrendPoint], options: argparse.Namespace) -> None:
    """Print one case over its runs, device by device, and board by board where there are several."""
    if options.json or options.csv:
        answer(_trend_sheet(points), options, empty="")
        return
    names_boards = has_boards(points)
    by_board = sorted(points, key=lambda point: (point.device, point.kept_by or ""))
    for _, of_board in groupby(by_board, key=lambda point: (point.device, point.kept_by)):
        nights = list(of_board)
        place = terminal_text(place_text(nights[-1], names_board=names_boards))
        print(f"{terminal_text(nights[0].case_id)} on {place}, {format_count(len(nights), 'run')}")
        print(f"{spark_line([night.measured_ns for night in nights])}\n")
        show(_trend_table(nights))


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
    """Return what was measured: the device, and which board of its kind where these are to be told apart."""
    if not names_board:
        return point.device
    board = point.board if point.kept_by else None
    return f"{point.device}, board {board.text}" if board else f"{point.device}, without a board's name"


def commit_text(commit: Commit | None) -> str | None:
    """Return the beginning of a commit's id, with a + where tracked files differed from it."""
    return f"{commit.sha[:10]}{'+' if commit.is_dirty else ''}" if commit else None


def _trend_table(nights: Sequence[TrendPoint]) -> Table:
    table = Table("run began (UTC)", box=None, pad_edge=False)
    for name in ("measured", "to run before"):
        table.add_column(name, justify="right")
    for name in ("outcome", "commit", "fingerprint"):
        table.add_column(name)
    for older, night in zip([None, *nights], nights, strict=False):
        ratio = night.measured_ns / older.measured_ns if older and older.measured_ns and night.measured_ns else None
        cells = (format_ns(night.measured_ns), format_change(ratio), _outcome_text(night))
        commit, digest = commit_text(night.commit) or "-", night.fingerprint_digest or "-"
        table.add_row(_time_text(night.started_at), *cells, escape(commit), escape(digest[:8]))
    return table


def _outcome_text(night: TrendPoint) -> str:
    return f"{night.outcome.value} (slowed on purpose)" if night.is_injected else night.outcome.value


def _trend_sheet(points: Sequence[TrendPoint]) -> Sheet:
    columns = (
        *("case_id", "device", "run_id", "started_at", "outcome", "measured_ns", "samples_ns", "expected_ns"),
        *("baseline_ns", "sentinels_ns", "fingerprint_digest", "commit_sha", "is_dirty", "branch", "engine"),
        *("is_injected", "against", "board", "board_hostname", "is_linked"),
    )
    return Sheet(columns=columns, rows=tuple(_trend_row(point) for point in points))


def _trend_row(point: TrendPoint) -> tuple[Any, ...]:
    commit, board = point.commit, point.board
    return (
        *(point.case_id, point.device, point.run_id, point.started_at, point.outcome, point.measured_ns),
        *(list(point.samples_ns), point.expected_ns, point.baseline_ns, dict(point.sentinels_ns)),
        point.fingerprint_digest,
        *((commit.sha, commit.is_dirty, commit.branch) if commit else (None, None, None)),
        *(point.engine, point.is_injected, point.against),
        *((board.identity, board.hostname, board.is_linked) if board else (None, None, None)),
    )


def _table(sheet: Sheet) -> Table:
    """Lay a sheet out for people, without the columns in which nothing is told."""
    told = [place for place in range(len(sheet.columns)) if any(row[place] not in (None, False) for row in sheet.rows)]
    table = Table(box=None, pad_edge=False)
    for name in (sheet.columns[place] for place in told):
        table.add_column(escape(_HEADINGS.get(name, name)), overflow="fold", no_wrap=name in _UNBROKEN)
    for row in sheet.rows:
        table.add_row(*(escape(_cell(row[place], sheet.shown.get(sheet.columns[place]))) for place in told))
    return table


def _cell(value: Any, shown: Callable[[Any], str] | None) -> str:
    if shown is not None:
        return shown(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return _time_text(value)
    plain = _plain(value)
    return "-" if plain is None else str(plain)


def _csv(sheet: Sheet) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(sheet.columns)
    writer.writerows([_csv_cell(_plain(value)) for value in row] for row in sheet.rows)
    return out.getvalue()


def _csv_cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, which knows no infinity and nothing that is no number."""
    if isinstance(value, (float, Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _time_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
