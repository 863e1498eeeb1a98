"""Runs are added to a history, and come out of it as they went in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from perfsuite.errors import HistoryError
from perfsuite.records.run_origin import NO_ORIGIN, BoardName
from perfsuite.report.history import append_run, open_history, runs_of, trend_of
from perfsuite.report.history.append import fingerprint_digest, run_identity, run_rows, start_of
from perfsuite.report.history.columns import COLUMNS, MARK
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

from ...synthetic_judgements import PASSED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "history.md"


def test_a_row_has_every_column_of_the_documentation() -> None:
    """docs/history.md lists the columns with types and meanings, in order, and what a run becomes has exactly these."""
    listed = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert listed == [f"| `{each.name}` | {each.sql_type} | {each.meaning} |" for each in COLUMNS]
    row, *_ = run_rows(synthetic_run(n_cases=8))
    assert sorted(row) == sorted(each.name for each in COLUMNS)


def test_each_case_has_the_circumstances_of_its_group() -> None:
    run = synthetic_run(n_cases=500)
    rows = {row["kind"]: row for row in run_rows(run)}
    for kind, group in (("phase", "llama"), ("operator", "llama"), ("kernel", "kernels")):
        assert json.loads(rows[kind]["fingerprint"]) == run.fingerprints[group]
        assert rows[kind]["engine"] == run.subjects[group]
        assert rows[kind]["fingerprint_digest"] == fingerprint_digest(run.fingerprints[group])
    run = synthetic_run(n_cases=6)
    case = replace(run.judgements[0], kind="roofline", case_id="roofline/x")
    for others in ({}, {"llama": {"engine": "one"}}):
        (row,) = run_rows(replace(run, judgements=(case,), fingerprints={**others, "roofline": {"soc": "two"}}))
        assert json.loads(row["fingerprint"]) == {"soc": "two"}
    board = BoardName(identity="0123456789abcdef", hostname="shelf-2", is_linked=True)
    (row, *_) = run_rows(replace(run, origin=replace(run.origin, board=board)))
    assert (row["board"], row["board_hostname"], row["is_linked"]) == ("0123456789abcdef", "shelf-2", True)


def test_identities_are_those_of_what_they_are_of() -> None:
    """Of a fingerprint whatever its order, and of runs from before there were ids."""
    assert fingerprint_digest({"a": "1", "b": "2"}) == fingerprint_digest({"b": "2", "a": "1"})
    assert fingerprint_digest({"a": "1"}) != fingerprint_digest({"a": "2"})
    old, other = (replace(synthetic_run(n_cases=8, seed=seed), origin=NO_ORIGIN) for seed in (0, 1))
    assert run_identity(old) == run_identity(replace(old))
    assert run_identity(old) != run_identity(other)


@pytest.mark.parametrize("started_at", ["2026-03-01T02:00:00Z", "2026-03-01T03:00:00+01:00", "2026-03-01T02:00:00"])
def test_times_are_utc(started_at: str) -> None:
    assert start_of(replace(synthetic_run(n_cases=8), started_at=started_at)).isoformat() == "2026-03-01T02:00:00"


DECODE = "phase/smollm2-135m-q8_0/siso/decode"


def test_a_run_comes_out_as_it_went_in(tmp_path: Path) -> None:
    run = synthetic_run(n_cases=20)
    append_run(run, tmp_path)
    history = open_history(tmp_path)
    (point,) = trend_of(history, DECODE)
    judgement = next(each for each in run.judgements if each.case_id == DECODE)
    assert (point.measured_ns, point.samples_ns) == (judgement.measured_ns, judgement.samples_ns)
    assert (point.outcome, point.baseline_ns) == (judgement.outcome, judgement.baseline_ns)
    assert point.fingerprint == run.fingerprints["llama"]
    assert point.commit == run.origin.commit
    assert point.started_at.isoformat() == "2026-03-01T02:00:00+00:00"
    assert set(point.sentinels_ns) == {"memory", "compute"}


def test_hostile_names_go_through_unchanged(tmp_path: Path) -> None:
    """Quotes, tags, control characters, right-to-left and emoji in case ids are kept; no folder's name is a pattern."""
    run = synthetic_run(n_cases=60, names=HOSTILE_NAMES)
    folder = tmp_path / "it's [a] *?{b}"
    append_run(synthetic_run(n_cases=8, seed=1), tmp_path / "it's a xxb")
    append_run(run, folder)
    history = open_history(folder)
    held = {case_id for (case_id,) in history.rows("SELECT case_id FROM history")}
    devices = [each.device for each in runs_of(history)]
    assert held == {each.case_id for each in run.judgements}
    assert devices == [run.device]


def test_a_run_that_is_added_twice_counts_once(tmp_path: Path) -> None:
    run = synthetic_run(n_cases=8)
    assert append_run(run, tmp_path) == append_run(run, tmp_path)
    history = open_history(tmp_path)
    assert [each.n_cases for each in runs_of(history)] == [8]


def test_a_file_has_plain_columns_in_order_and_rows_by_case(tmp_path: Path) -> None:
    """Types are those that every reader of Parquet knows, the footer is marked, and statistics help to find a case."""
    path = append_run(synthetic_run(n_cases=8), tmp_path)
    described = duckdb.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    assert [(name, sql_type) for name, sql_type, *_ in described] == [(each.name, each.sql_type) for each in COLUMNS]
    assert {each.sql_type for each in COLUMNS} <= {
        *("INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "TIMESTAMP", "BIGINT[]")
    }
    assert duckdb.execute("SELECT key FROM parquet_kv_metadata(?)", [str(path)]).fetchall() == [(MARK.encode(),)]
    path = append_run(synthetic_run(n_cases=40), tmp_path)
    ids = [case_id for (case_id,) in duckdb.execute("SELECT case_id FROM read_parquet(?)", [str(path)]).fetchall()]
    assert ids == sorted(ids)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"judgements": ()}, "holds no case"),
        ({"is_interrupted": True}, "was interrupted"),
        ({"judgements": (replace(PASSED, measured_ns=-5),)}, "measured_ns is -5, expected 0 or more"),
        ({"started_at": "yesterday"}, "started_at is 'yesterday'"),
        ({"device": "\ud800"}, "cannot be written as rows"),
    ],
)
def test_what_is_no_point_of_a_trend_leaves_no_file(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(HistoryError, match=told):
        append_run(replace(synthetic_run(n_cases=8), **change), tmp_path)
    assert list(tmp_path.rglob("*.parquet")) == []


@pytest.mark.long
def test_runs_that_end_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    program = (
        "import sys; from dataclasses import replace; from pathlib import Path\n"
        "from perfsuite.report.history import append_run, compact\n"
        "from perfsuite.testing.run_files import synthetic_run\n"
        "run = synthetic_run(n_cases=4)\n"
        "for index in range(3):\n"
        "    run_id = f'{sys.argv[2]}-{index}'\n"
        "    append_run(replace(run, origin=replace(run.origin, run_id=run_id)), Path(sys.argv[1]))\n"
        "    compact(Path(sys.argv[1]))\n"
    )
    commands = [[sys.executable, "-c", program, str(tmp_path), str(number)] for number in range(3)]
    running = [subprocess.Popen(command, env={**os.environ}) for command in commands]
    assert [each.wait(timeout=120) for each in running] == [0, 0, 0]
    history = open_history(tmp_path)
    assert sorted(each.run_id for each in runs_of(history)) == [f"{a}-{b}" for a in range(3) for b in range(3)]
