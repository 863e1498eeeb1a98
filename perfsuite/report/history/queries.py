"""The questions that are asked of a history most, and their answers as records, and a trend as a chart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache, partial
from itertools import groupby
from typing import Any

from perfsuite.records.chart import Axis, Line, XYChart, XYPanel
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName, Commit
from perfsuite.records.trend_point import TrendPoint, has_boards
from perfsuite.report.history.database import ONCE, quoted
from perfsuite.report.history.reader import HistoryReader
from perfsuite.units import NS_PER_S, format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRun:
    """One run of a history."""

    run_id: str
    #: UTC.
    started_at: datetime
    device: str
    workload: str
    n_cases: int
    n_failed: int
    commit: Commit | None
    is_injected: bool
    against: str | None
    board: BoardName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCase:
    """One case on one device, over all runs."""

    case_id: str
    device: str
    n_runs: int
    #: Of the newest run, UTC.
    last_at: datetime
    #: Of the newest run in which it was measured.
    last_measured_ns: int | None
    last_outcome: Outcome


#: Whether a row is of the device and the board that parameters name: this by its identity, its beginning, or host name.
_CHOSEN = """($device::VARCHAR IS NULL OR device = $device)
  AND ($board::VARCHAR IS NULL OR coalesce(starts_with(board, $board) OR board_hostname = $board, false))"""

#: What keeps the runs of a board together; NULL of runs on the machine itself.
_KEPT_BY = "CASE WHEN is_linked THEN board END"

_FAILING = tuple(outcome.value for outcome in Outcome if outcome.fails)

#: Whether a row is of a run and a case, at a time that has a date, with an outcome that this version knows.
_READABLE = f"""coalesce(run_id IS NOT NULL AND device IS NOT NULL AND case_id IS NOT NULL
  AND started_at BETWEEN TIMESTAMP '0001-01-02' AND TIMESTAMP '9999-12-30'
  AND outcome IN ({", ".join(quoted(outcome.value) for outcome in Outcome)}), false)"""

_RUNS = f"""
SELECT run_id, min(started_at) AS began_at, any_value(device), any_value(workload), count(*),
  count(*) FILTER (WHERE list_contains($failing, outcome)),
  any_value(commit_sha), any_value(is_dirty), any_value(branch), bool_or(coalesce(is_injected, false)),
  any_value(against), any_value(board), any_value(board_hostname), any_value(is_linked)
FROM history
WHERE {_CHOSEN} AND run_id IS NOT NULL AND device IS NOT NULL
  AND started_at BETWEEN TIMESTAMP '0001-01-02' AND TIMESTAMP '9999-12-30'
GROUP BY run_id ORDER BY began_at DESC, run_id LIMIT $last
"""  # nosec B608  # constants of ours, and parameters

_CASES = f"""
WITH rows AS (FROM history SELECT *, {_READABLE} AS is_readable)
SELECT case_id, device, count(*) FILTER (is_readable), max(started_at) FILTER (is_readable),
  arg_max(measured_ns, started_at) FILTER (is_readable), arg_max(outcome, started_at) FILTER (is_readable),
  count(*) FILTER (NOT is_readable)
FROM rows
WHERE ($pattern::VARCHAR IS NULL OR contains(lower(case_id), lower($pattern)) OR case_id GLOB $pattern) AND {_CHOSEN}
GROUP BY case_id, device ORDER BY case_id, device
"""  # nosec B608  # constants of ours, and parameters

#: Which rows there are is found out by their narrow columns, and the others are read of these alone. With the case's id
#: as a condition by itself, row groups without it are not read.
_TRENDS = f"""
WITH found AS (FROM stored WHERE {{}} AND {_CHOSEN}),
  rows AS (SELECT DISTINCT case_id, run_id, device, {_KEPT_BY} AS kept_by, started_at, {_READABLE} AS is_readable
    FROM found),
  newest AS (SELECT case_id, run_id FROM rows QUALIFY row_number() OVER (
    PARTITION BY case_id, device, kept_by, is_readable ORDER BY started_at DESC, run_id DESC) <= $last)
SELECT found.run_id, CASE WHEN {_READABLE} THEN started_at END, device, found.case_id, outcome, measured_ns, {{}},
  expected_ns, baseline_ns, sentinel_memory_ns, sentinel_compute_ns, fingerprint, fingerprint_digest, commit_sha,
  is_dirty, branch, engine, coalesce(is_injected, false), against, board, board_hostname, is_linked, {_READABLE}
FROM found SEMI JOIN newest
  ON found.case_id IS NOT DISTINCT FROM newest.case_id AND found.run_id IS NOT DISTINCT FROM newest.run_id
{ONCE} ORDER BY found.case_id, device, found.started_at, found.run_id
"""  # nosec B608  # constants of ours, and parameters

#: More rows than any history has.
_ALL = 2**62


def runs_of(
    history: HistoryReader, *, device: str | None = None, board: str | None = None, last: int | None = None
) -> tuple[HistoryRun, ...]:
    """Return the runs, the newest first."""
    given = {"failing": list(_FAILING), "device": device, "board": board, "last": last or _ALL}
    return tuple(_run(row) for row in history.rows(_RUNS, given))


def run_ids(history: HistoryReader) -> frozenset[str]:
    """Return the ids of all runs."""
    return frozenset(run_id for (run_id,) in history.rows("SELECT DISTINCT run_id FROM history"))


def cases_of(
    history: HistoryReader, *, pattern: str | None = None, device: str | None = None, board: str | None = None
) -> tuple[HistoryCase, ...]:
    """Return the cases whose id contains the pattern, in either case, or fits it (``*``, ``?``), sorted."""
    rows = history.rows(_CASES, {"pattern": pattern, "device": device, "board": board})
    _tell_unreadable(history, sum(row[6] for row in rows))
    return tuple(
        HistoryCase(
            case_id=row[0],
            device=row[1],
            n_runs=row[2],
            last_at=_utc(row[3]),
            last_measured_ns=row[4],
            last_outcome=Outcome(row[5]),
        )
        for row in rows
        if row[2]
    )


def trend_of(
    history: HistoryReader,
    case_id: str | None = None,
    *,
    device: str | None = None,
    board: str | None = None,
    last: int | None = None,
) -> tuple[TrendPoint, ...]:
    """Return the runs of a case, or without their samples of all cases: the newest `last` of each device and board.

    They are in the order of case, device and time.
    """
    is_one = case_id is not None
    query = _TRENDS.format("case_id = $case_id" if is_one else "true", "samples_ns" if is_one else "NULL")
    given = {**({"case_id": case_id} if is_one else {}), "device": device, "board": board, "last": last or _ALL}
    found = [_point(row) if row[-1] else None for row in history.each_row(query, given)]  # of many, one row at a time
    points = tuple(point for point in found if point)
    _tell_unreadable(history, len(found) - len(points))
    return points


def _tell_unreadable(history: HistoryReader, n_rows: int) -> None:
    if n_rows:
        history.leave_out(f"{format_count(n_rows, 'row')} of an unknown outcome, or without a run, a case or a time")


def _run(row: tuple[Any, ...]) -> HistoryRun:
    return HistoryRun(
        run_id=row[0],
        started_at=_utc(row[1]),
        device=row[2],
        workload=row[3],
        n_cases=row[4],
        n_failed=row[5],
        commit=_commit(*row[6:9]),
        is_injected=row[9],
        against=row[10],
        board=_board(*row[11:14]),
    )


def _point(row: tuple[Any, ...]) -> TrendPoint:
    sentinels = {"memory": row[9], "compute": row[10]}
    return TrendPoint(
        run_id=row[0],
        started_at=_utc(row[1]),
        device=row[2],
        case_id=row[3],
        outcome=Outcome(row[4]),
        measured_ns=row[5],
        samples_ns=tuple(row[6] or ()),
        expected_ns=row[7],
        baseline_ns=row[8],
        sentinels_ns={name: time for name, time in sentinels.items() if time is not None and time > 0},
        fingerprint=_fingerprint(row[11]) if row[11] is not None else None,
        fingerprint_digest=row[12],
        commit=_commit(*row[13:16]),
        engine=row[16],
        is_injected=row[17],
        against=row[18],
        board=_board(*row[19:22]),
    )


def _commit(sha: str | None, is_dirty: bool | None, branch: str | None) -> Commit | None:
    return Commit(sha=sha, is_dirty=bool(is_dirty), branch=branch) if sha is not None else None


def _board(identity: str | None, hostname: str | None, is_linked: bool | None) -> BoardName | None:
    if identity is None:
        return None
    return BoardName(identity=identity, hostname=hostname or "", is_linked=bool(is_linked))


@cache
def _fingerprint(text: str) -> Mapping[str, str]:
    try:
        held = json.loads(text)
    except ValueError:
        held = None
    return {str(name): str(value) for name, value in held.items()} if isinstance(held, dict) else {}


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc)


_MS_PER_S = 1000
_S_PER_DAY = 86_400.0
_DIGEST_LENGTH = 8


def trend_chart(points: Sequence[TrendPoint]) -> XYChart:
    """Return one case's times over days; a line begins anew where the fingerprint changes, or the board."""
    known = [point for point in points if point.measured_ns]
    names_boards = has_boards(known)
    began_at = min((point.started_at for point in known), default=None)
    name = partial(_label, names_board=names_boards)
    named = sorted(known, key=lambda point: (name(point), point.started_at))
    lines = tuple(
        Line(
            label=label,
            x=tuple((point.started_at - began_at).total_seconds() / _S_PER_DAY for point in nights) if began_at else (),
            y=tuple((point.measured_ns or 0) * _MS_PER_S / NS_PER_S for point in nights),
        )
        for label, nights in ((label, list(each)) for label, each in groupby(named, key=name))
    )
    since = f" since {began_at:%Y-%m-%d} (UTC)" if began_at else ""
    panel = XYPanel(
        title=points[0].case_id if points else "",
        x_axis=Axis(label=f"days{since}"),
        y_axis=Axis(label="time of a run (ms)"),
        lines=lines,
    )
    parted = "device, board and fingerprint" if names_boards else "device and fingerprint"
    note = f"Medians of {format_count(len(known), 'run')}; a line each {parted}."
    return XYChart(title="One case over its runs", note=note, panels=(panel,))


def _label(point: TrendPoint, *, names_board: bool) -> str:
    board = f", board {point.kept_by[:_DIGEST_LENGTH]}" if names_board and point.kept_by else ""
    return f"{point.device}{board}, {(point.fingerprint_digest or 'no fingerprint')[:_DIGEST_LENGTH]}"
