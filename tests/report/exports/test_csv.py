"""Tables, as Python's csv and DuckDB read them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings

from perfsuite.records.run_file import RunFile
from perfsuite.records.run_origin import BoardName, RunOrigin
from perfsuite.report.exports.csv import csv_text
from perfsuite.report.visible import without_controls
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

from .conftest import WORDS, run_of

RUN = synthetic_run(names=HOSTILE_NAMES)
OTHER = replace(synthetic_run(n_cases=9), device="board")


def _rows(runs: list[RunFile], **options: bool) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text(runs, **options), newline="")))


def test_rows_of_several_runs_are_told_apart() -> None:
    assert [row["device"] for row in _rows([RUN, OTHER])[-9:]] == ["board"] * 9
    board = BoardName(identity="0123456789abcdef", hostname="shelf", is_linked=True)
    for each, told in ((board, "0123456789abcdef"), (replace(board, is_linked=False), "")):
        assert {row["board"] for row in _rows([replace(OTHER, origin=RunOrigin(board=each))])} == {told}


def test_duckdb_knows_the_types_by_itself(tmp_path: Path) -> None:
    """DuckDB's ``read_csv`` takes times for integers and ratios for floating point, and sums them as Python does."""
    path = tmp_path / "runs.csv"
    path.write_bytes(csv_text([RUN, OTHER]).encode())
    types = dict(duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE FROM read_csv('{path}'))").fetchall())
    assert (types["measured_ns"], types["change_ratio"], types["case"]) == ("BIGINT", "DOUBLE", "VARCHAR")
    (found,) = duckdb.sql(f"SELECT count(*), sum(measured_ns) FROM read_csv('{path}')").fetchall()
    judgements = [*RUN.judgements, *OTHER.judgements]
    assert found == (len(judgements), sum(each.measured_ns or 0 for each in judgements))


def test_a_spreadsheet_is_given_no_formula() -> None:
    """On request, text that begins like a formula gets an apostrophe; numbers do not."""
    plain, safe = (_rows([RUN], is_for_spreadsheet=asked) for asked in (False, True))
    beginnings = ("=", "+", "-", "@", "\t", "\r")
    dangerous = [row["reason"] for row in plain if row["reason"].startswith(beginnings)]
    assert dangerous
    assert not any(row[name].startswith(beginnings) for row in safe for name in ("case", "kind", "reason", "device"))
    assert [row["reason"].removeprefix("'") for row in safe] == [row["reason"].removeprefix("'") for row in plain]
    assert [row["lost_ns"] for row in safe] == [row["lost_ns"] for row in plain]


@given(WORDS)
@settings(max_examples=25, deadline=None)
def test_words_of_a_run_are_read_back_by_duckdb(tmp_path_factory: pytest.TempPathFactory, words: str) -> None:
    run = run_of(words)
    path = tmp_path_factory.mktemp("csv") / "run.csv"
    path.write_bytes(csv_text([run]).encode())
    reader = f"read_csv('{path}', all_varchar = true, header = true, delim = ',', quote = '\"', escape = '\"')"
    query = f"SELECT \"case\", coalesce(reason, '') FROM {reader}"
    assert duckdb.sql(query).fetchall() == [
        (without_controls(each.case_id), without_controls(words)) for each in run.judgements
    ]
