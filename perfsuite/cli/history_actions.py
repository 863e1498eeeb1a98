"""The actions of ``perfsuite history`` except change points: what is there, and what adds to it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, Records, Sheet, cell_text, check_picture, draw, fields_of, give
from perfsuite.errors import HistoryError, PerfsuiteError, meant
from perfsuite.records.case import named_case
from perfsuite.records.history_place import HistoryPlace
from perfsuite.records.run_file import read_run_file
from perfsuite.records.run_origin import Commit
from perfsuite.records.trend_point import TrendPoint, has_boards
from perfsuite.report.history import (
    HistoryReader,
    SkippedFile,
    append_run,
    cases_of,
    compact,
    open_history,
    run_ids,
    runs_of,
    trend_of,
)
from perfsuite.report.history.append import run_identity
from perfsuite.report.history.reader import answer_query
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_change, format_count, format_ns

#: More runs than any history has, and the most rows and seconds that may be asked for.
_MOST_RUNS, _MOST_ROWS, _MOST_LIMIT_S = 1_000_000_000, 100_000_000, 86_400.0

#: What positional arguments are called where people read of them.
_NAMES = {"case_id": "CASE", "pattern": "PATTERN", "query": "SELECT"}


def answered(action: Callable[[HistoryReader, argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run an action on its history; name on standard error each file that is left out.

    Raises HistoryError: an option cannot be, or the action raises it.
    """
    _check(options)
    history = open_history(options.history)
    try:
        return action(history, options)
    finally:
        _tell_skipped(history.skipped)


def _check(options: argparse.Namespace) -> None:
    given = vars(options)
    for name, value in {**given, "history": str(options.history)}.items():
        if isinstance(value, str) and value.encode("utf-8", "replace").decode() != value:
            raise HistoryError(f"{_NAMES.get(name, f'--{name}')}={value!a}: is not UTF-8")
    if (last := given.get("last")) is not None and not 1 <= last <= _MOST_RUNS:
        raise HistoryError(f"--last={last}: expected 1 to {_MOST_RUNS:,} runs")
    if not 1 <= given.get("rows", 1) <= _MOST_ROWS:
        raise HistoryError(f"--rows={options.rows}: expected 1 to {_MOST_ROWS:,}")
    if not 0.0 < given.get("limit_s", 1.0) <= _MOST_LIMIT_S:
        raise HistoryError(f"--limit-s={options.limit_s:g}: expected more than 0 and at most {_MOST_LIMIT_S:,.0f}")
    if not given.get("repo", Path()).is_dir():
        raise HistoryError(f"--repo={options.repo}: is no folder; name the git repository of the sources under test")


def _tell_skipped(skipped: Iterable[SkippedFile]) -> None:
    for each in skipped:
        print(f"perfsuite: {terminal_text(each.text)}", file=sys.stderr)


def empty_text(history: HistoryReader, options: argparse.Namespace) -> str:
    """Say that a history has no run of what was asked for, where it is, and what it has or how it fills."""
    asked = {"device": options.device, "board": options.board}
    text = "".join(f" of {name} {value}" for name, value in asked.items() if value)
    place: HistoryPlace = options.history
    where = f"{place.absolute() if isinstance(place, Path) else place}: holds no run{text}"
    runs = runs_of(history)
    if not runs:
        return f"{where} yet; a run with --device adds itself, and 'perfsuite history add RUN...' adds older ones"
    there = {
        "device": [each.device for each in runs],
        "board": [name for each in runs if each.board for name in (each.board.kept_by, each.board.hostname) if name],
    }
    known = {name: tuple(dict.fromkeys(values)) for name, values in there.items()}
    named = "; ".join(f"{name}s are {', '.join(known[name]) or 'not named'}" for name in asked if asked[name])
    alike = next(filter(None, (meant(value, known[name]) for name, value in asked.items() if value)), "")
    return f"{where}; {named}{alike}"


# what is there


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

#: What a column has, where that is not the field of its name.
_COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "commit": lambda run: commit_text(run.commit),
    "commit_sha": lambda point: point.commit and point.commit.sha,
    "is_dirty": lambda point: point.commit and point.commit.is_dirty,
    "branch": lambda point: point.commit and point.commit.branch,
    "board_hostname": lambda point: point.board and point.board.hostname,
    "is_linked": lambda point: point.board and point.board.is_linked,
}


def _columns(names: str, **own: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    return {name: {**_COLUMNS, **own}.get(name) or attrgetter(name) for name in names.split()}


_RUN = _columns(
    "started_at device board workload n_cases n_failed commit run_id against is_injected",
    board=lambda run: run.board.kept_by if run.board else None,
)
_CASE = _columns("case_id device n_runs last_at last_measured_ns last_outcome")
_POINT = _columns(
    "case_id device run_id started_at outcome measured_ns samples_ns expected_ns baseline_ns sentinels_ns "
    "fingerprint_digest commit_sha is_dirty branch engine is_injected against board board_hostname is_linked",
    board=lambda point: point.board and point.board.identity,
)

_listed = partial(Records.of, shown={"last_measured_ns": format_ns}, headings=_HEADINGS)


def answer_runs(history: HistoryReader, options: argparse.Namespace) -> int:
    """List the runs."""
    runs = runs_of(history, device=options.device, board=options.board, last=options.last)
    return give(Answer.of(_listed(_RUN, runs), empty="" if runs else empty_text(history, options)), options)


def answer_cases(history: HistoryReader, options: argparse.Namespace) -> int:
    """List the cases."""
    cases = cases_of(history, pattern=options.pattern, device=options.device, board=options.board)
    return give(Answer.of(_listed(_CASE, cases), empty="" if cases else _no_cases_text(history, options)), options)


def _no_cases_text(history: HistoryReader, options: argparse.Namespace) -> str:
    known = [each.case_id for each in cases_of(history, device=options.device, board=options.board)]
    if not known or not options.pattern:
        return empty_text(history, options)
    parts = {part for each in known for part in each.split("/")}
    alike = meant(options.pattern, (*known, *parts)) or "; 'perfsuite history cases' lists all"
    return f"{options.history}: holds no case that fits {options.pattern!r}{alike}"


def answer_trend(history: HistoryReader, options: argparse.Namespace) -> int:
    """Show one case over all runs, and draw it where a file is named."""
    check_picture(options.plot)
    points = case_points(history, options)
    records = Records.of(_POINT, points, shown={}, headings={})
    give(Answer(parts=lambda: _trend_parts(points), plain=records.plain, csv=records.csv), options)
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
    if points := trend_of(history, options.case_id, **chosen, last=options.last):
        return points
    known = [each.case_id for each in cases_of(history, **chosen)]
    if not known:
        raise HistoryError(empty_text(history, options))
    try:
        case_id = named_case(options.case_id, known, f"{options.history}: CASE ")
    except PerfsuiteError as error:
        raise HistoryError(f"{error}; 'perfsuite history cases' lists all") from None
    return trend_of(history, case_id, **chosen, last=options.last)


def _trend_parts(points: Sequence[TrendPoint]) -> Iterator[Part]:
    """Yield one case over its runs device by device, and board by board where there are several."""
    names_boards = has_boards(points)
    by_board = sorted(points, key=lambda point: (point.device, point.kept_by or ""))
    for _, of_board in groupby(by_board, key=lambda point: (point.device, point.kept_by)):
        nights = list(of_board)
        place = terminal_text(place_text(nights[-1], names_board=names_boards))
        yield f"{terminal_text(nights[0].case_id)} on {place}, {format_count(len(nights), 'run')}"
        yield f"{spark_line([night.measured_ns for night in nights])}\n"
        rows = []
        for older, night in zip([None, *nights], nights, strict=False):
            ratio = night.measured_ns / older.measured_ns if older and older.measured_ns and night.measured_ns else None
            outcome = f"{night.outcome.value} (slowed on purpose)" if night.is_injected else night.outcome.value
            cells = (format_ns(night.measured_ns), format_change(ratio), outcome, commit_text(night.commit))
            rows.append((cell_text(night.started_at), *cells, (night.fingerprint_digest or "-")[:8]))
        yield Sheet(("run began (UTC)", ">measured", ">to run before", "outcome", "commit", "fingerprint"), rows)


_BARS = "▁▂▃▄▅▆▇█"
#: Runs that the line of bars shows, the newest.
_MOST_BARS = 60


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


def answer_sql(history: HistoryReader, options: argparse.Namespace) -> int:
    """Answer a SELECT of somebody's own."""
    found = answer_query(history, options.query, most_rows=options.rows, limit_s=options.limit_s)
    if found.is_cut:
        text = f"more than {options.rows:,} rows; these are the first; --rows N gives more"
        print(f"perfsuite: sql: {text}", file=sys.stderr)
    return give(Answer.of(Records(columns=found.columns, rows=found.rows), empty="no rows"), options)


# what changes it


def answer_add(history: HistoryReader, options: argparse.Namespace) -> int:
    """Add runs that are not there yet; of a folder of runs, those that were interrupted are left out."""
    known, done = set(run_ids(history)), list[tuple[Path, str | None]]()
    for named in options.runs:
        for path in _run_paths(named):
            try:
                done.append((path, _added(path, options.history, known, is_one_of_many=path != named)))
            except (PerfsuiteError, OSError) as error:  # the others are added all the same
                why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
                told = why if str(path) in why else f"{path}: {why}"
                print(f"perfsuite: error: {terminal_text(told)}", file=sys.stderr)
                done.append((path, None))
    lines = [f"{terminal_text(str(path))}: {told}" for path, told in done if told is not None]
    plain = [{"run": str(path), "done": told} for path, told in done]
    return give(Answer(parts=lines, plain=plain), options, 2 if any(told is None for _, told in done) else 0)


def _run_paths(named: Path) -> list[Path]:
    """Return the runs that a folder of runs holds; a run, or what is none, is itself."""
    if not os.path.isdir(named) or (named / "run.json").exists():  # Path raises where a name is too long
        return [named]
    return sorted(named.glob("*/run.json")) or [named]


def _added(path: Path, place: HistoryPlace, known: set[str], *, is_one_of_many: bool) -> str:
    if os.path.isdir(path) and not (path / "run.json").exists():
        raise HistoryError(f"{path}: holds no run.json, nor do the folders in it; name a run or a folder of runs")
    run = read_run_file(path)
    identity = run_identity(run)
    if identity in known:
        return "is there already"
    if run.is_interrupted and is_one_of_many:
        return "was interrupted; left out"
    append_run(run, place)
    known.add(identity)
    return f"{format_count(len(run.judgements), 'case')} added"


def answer_compact(_: HistoryReader, options: argparse.Namespace) -> int:
    """Merge all files into one."""
    if isinstance(options.history, Path) and not options.history.is_dir():
        raise HistoryError(f"--history={options.history}: is no folder; nothing to compact")
    done = compact(options.history)
    _tell_skipped(done.skipped)
    merged = f"{format_count(done.n_runs, 'run')} of {format_count(done.n_files, 'file')} merged"
    text = f"{options.history}: nothing to merge" if done.path is None else f"{done.path}: {merged}"
    plain = {"file": done.path and str(done.path), **fields_of(done, "n_files", "n_runs")}
    return give(Answer(parts=[text], plain=plain), options)
