"""Adds runs to a history, each as a file of its own, so that none waits for another; and merges the files into one.

The merged file is whole and on the disk before any file that it replaces goes. In between, and after a merge that was
broken off, rows are there twice, and readers take each case of a run once. Nothing is lost whoever merges at the same
time: files are removed only by whose own merged file holds their rows.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from perfsuite.errors import HistoryError
from perfsuite.records.case import group_of
from perfsuite.records.history_place import HistoryPlace
from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RunFile, moment_of
from perfsuite.report.history.columns import COLUMNS, OF_CASE, SCHEMA
from perfsuite.report.history.database import (
    copy_statement,
    database,
    database_errors,
    first_line,
)
from perfsuite.report.history.files import SkippedFile
from perfsuite.report.history.reader import HistoryReader
from perfsuite.report.history.store import store_of
from perfsuite.report.run_writer import plain_case

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_BUILD = re.compile(r"\bbuild ([0-9a-f]{7,64})\b")

_COVARIATES = ("load_average", "cpu_mhz", "temperature_celsius", "waiting_ratio", "steal_ratio")


def run_rows(run: RunFile) -> list[dict[str, Any]]:
    """Return a JSON-able row for each case of a run.

    Raises HistoryError where the time at which the run began is none.
    """
    of_run = _of_run(run)
    groups = {kind: group_of(kind, run.fingerprints) for kind in {each.kind for each in run.judgements}}
    of_group = {name: _of_group(run, name) for name in set(groups.values())}
    return [{**of_run, **_of_case(each), **of_group[groups[each.kind]]} for each in run.judgements]


def run_identity(run: RunFile) -> str:
    """Return the run's id; one of what the run is where it was written before runs had ids."""
    if run.origin.run_id:
        return run.origin.run_id
    told = json.dumps([run.started_at, run.device, run.workload, [each.measured_ns for each in run.judgements]])
    return f"without-id-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def start_of(run: RunFile) -> datetime:
    """Return when a run began, as UTC without a time zone; a time without a zone is taken for UTC."""
    moment = moment_of(run.started_at)
    if moment is None:
        raise HistoryError(f"started_at is {run.started_at!r}, expected a time such as 2026-03-01T02:00:00+00:00")
    return moment.replace(tzinfo=None)


def fingerprint_digest(fingerprint: Mapping[str, str]) -> str:
    """Return a short digest that is equal for equal fingerprints."""
    return hashlib.sha256(_fingerprint_text(fingerprint).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _of_run(run: RunFile) -> dict[str, Any]:
    model_name, _, scenario = run.workload.rpartition("/")
    commit, board = run.origin.commit, run.origin.board
    return {
        "schema_version": SCHEMA,
        "run_id": run_identity(run),
        "started_at": start_of(run).isoformat(sep=" "),
        "device": run.device,
        "board": board.identity if board else None,
        "board_hostname": board.hostname if board else None,
        "is_linked": board.is_linked if board else None,
        "workload": run.workload,
        "model_name": model_name,
        "scenario": scenario,
        "suite_version": run.suite_version,
        "commit_sha": commit.sha if commit else None,
        "is_dirty": commit.is_dirty if commit else None,
        "branch": commit.branch if commit else None,
        "is_injected": run.is_injected,
        "against": run.against,
    }


def _of_case(judgement: Judgement) -> dict[str, Any]:
    plain, samples = plain_case(judgement), judgement.samples_ns
    return {
        "case_id": judgement.case_id,
        **{column.name: plain[column.name] for column in OF_CASE if column.name in plain},
        "n_samples": len(samples),
        "sample_min_ns": min(samples, default=None),
        "sample_median_ns": _median_ns(samples),
        "sample_max_ns": max(samples, default=None),
    }


def _of_group(run: RunFile, group: str) -> dict[str, Any]:
    sentinels, covariates = run.sentinels_ns.get(group, {}), run.covariates.get(group, {})
    fingerprint, engine = run.fingerprints.get(group), run.subjects.get(group)
    build = _BUILD.search(engine or "")
    return {
        **{f"sentinel_{name}_ns": _median_ns(sentinels.get(name, ())) for name in ("memory", "compute")},
        **{name: covariates.get(name) for name in _COVARIATES},
        "fingerprint_digest": fingerprint_digest(fingerprint) if fingerprint is not None else None,
        "fingerprint": _fingerprint_text(fingerprint) if fingerprint is not None else None,
        "engine": engine,
        "engine_build": build[1] if build else None,
    }


def _median_ns(times_ns: tuple[int, ...]) -> int | None:
    return round(median(times_ns)) if times_ns else None


def _fingerprint_text(fingerprint: Mapping[str, str]) -> str:
    return json.dumps(dict(sorted(fingerprint.items())), ensure_ascii=False, separators=(",", ":"))


#: Where the runs' own files lie.
LOOSE = "runs"

#: A run id of these characters is a file's name as it is.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def file_name(started_at: datetime, run_id: str) -> str:
    """Return the name of a run's own file; the same run has the same."""
    safe_id = run_id if _PLAIN_ID.fullmatch(run_id) else hashlib.sha256(run_id.encode("utf-8", "replace")).hexdigest()
    return f"{LOOSE}/{started_at:%Y%m%dT%H%M%S.%f}Z-{safe_id}.parquet"


def append_run(run: RunFile, place: HistoryPlace) -> Path | str:
    """Add a run to a history; return its file, or its object's address.

    The same run may be added again: it is the same file, and its rows count once.

    Raises HistoryError where the run was interrupted, holds no case or a negative time, or cannot be written as rows,
    or the file cannot be written.
    """
    if run.is_interrupted:
        raise HistoryError("the run was interrupted, and is not a run of the history; run again")
    if not run.judgements:
        raise HistoryError("the run holds no case; there is nothing to add to the history")
    for each in run.judgements:
        if each.measured_ns is not None and each.measured_ns < 0:
            raise HistoryError(f"{each.case_id}: measured_ns is {each.measured_ns}, expected 0 or more")
    name = file_name(start_of(run), run_identity(run))
    with database_errors("the run cannot be added to the history"), database() as connection:
        fill_table(connection, run_rows(run))
        return store_of(place).write(name, lambda path: connection.execute(copy_statement("run_rows", path)))


def fill_table(connection: DuckDBPyConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Create the table ``run_rows`` of JSON-able rows."""
    structure = json.dumps([{column.name: column.sql_type for column in COLUMNS}])
    try:
        text = json.dumps(rows, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError as error:
        raise HistoryError(f"the run cannot be written as rows ({first_line(error)})") from error
    connection.execute(
        "CREATE OR REPLACE TABLE run_rows AS SELECT each.* FROM (SELECT unnest(from_json(?, ?)) AS each)",
        [text, structure],
    )


COMPACTED = "compacted"

#: How many runs there are, whether no file holds what another holds, too, and every value, so that a damaged one shows.
_CHECK = """
SELECT count(DISTINCT run_id), count(*) = (SELECT count(*) FROM (SELECT DISTINCT case_id, run_id FROM stored)),
  sum(hash(COLUMNS(*)))
FROM stored
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What a merge did."""

    #: The merged file, or the address of the merged object; None where there was nothing to merge.
    path: Path | str | None
    n_files: int
    n_runs: int
    skipped: tuple[SkippedFile, ...] = ()


def compact(place: HistoryPlace) -> Compaction:
    """Merge all files of a history, but not those of folders below it, into one that is sorted by case and time.

    A damaged file is left where it is. Raises HistoryError where a file cannot be written or removed.
    """
    store = store_of(place)
    history = HistoryReader(store, folders=[store.root / name for name in (LOOSE, COMPACTED)])
    ((n_runs, is_once, *_),) = history.rows(_CHECK)
    table = "stored" if is_once else "history"  # to find the doubled rows takes as long again
    if len(history.paths) < 2 and all(path.parent.name != LOOSE for path in history.paths):
        return Compaction(path=None, n_files=len(history.paths), n_runs=0, skipped=history.skipped)

    def fill(path: Path) -> None:
        with database_errors(f"{place}: cannot be merged, nothing was changed"), ExitStack() as stack:
            history.ask(stack, copy_statement(table, path), writes=path)

    made = store.write(f"{COMPACTED}/{uuid.uuid4().hex}.parquet", fill)
    store.remove(history.paths)
    return Compaction(path=made, n_files=len(history.paths), n_runs=n_runs, skipped=history.skipped)
