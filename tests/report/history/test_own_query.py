"""A query of one's own reads the history, and does nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history import append_run
from perfsuite.report.history.own_query import ask
from perfsuite.testing.run_files import synthetic_run


@pytest.fixture
def odd_dir(tmp_path: Path) -> Path:
    """A history of one run, in a folder whose name means something to SQL and to patterns."""
    append_run(synthetic_run(n_cases=12), tmp_path / "it's [a]")
    return tmp_path / "it's [a]"


def test_a_select_is_answered(odd_dir: Path) -> None:
    """Names of columns and rows come back."""
    answer = ask(odd_dir, "SELECT count(*) AS n, 'x' AS text FROM history")
    assert (answer.columns, answer.rows) == (("n", "text"), ((12, "x"),))


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO 'x.csv'",
        "CREATE TABLE t AS SELECT 1",
        "SELECT 1; SELECT 2",
        "ATTACH 'x.db'",
        "INSTALL httpfs",
        "SET memory_limit = '1TB'",
        "",
    ],
)
def test_what_is_no_single_select_is_refused(odd_dir: Path, query: str) -> None:
    """Nothing is written, attached, installed or set."""
    with pytest.raises(HistoryError, match="expected a single SELECT"):
        ask(odd_dir, query)


@pytest.mark.parametrize("path", ["/etc/hostname", "https://example.invalid/x.csv"])
def test_other_files_and_addresses_are_out_of_reach(odd_dir: Path, path: str) -> None:
    """A query reads the history's folders alone."""
    with pytest.raises(HistoryError, match="sql: "):
        ask(odd_dir, f"SELECT * FROM read_csv('{path}')")


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT nothing FROM history"])
def test_a_mistake_is_one_line(odd_dir: Path, query: str) -> None:
    """What DuckDB says of a mistake is told in one line."""
    with pytest.raises(HistoryError, match=r"^sql: [^\n]+$"):
        ask(odd_dir, query)


@pytest.mark.parametrize("column", ["measured_ns", "reason", "samples_ns", "fingerprint"])
def test_a_file_that_is_damaged_where_the_query_reads_is_left_out(odd_dir: Path, column: str) -> None:
    """Whatever the column, the file is named and the others answer."""
    damaged = append_run(synthetic_run(n_cases=12, seed=5), odd_dir)
    content = bytearray(damaged.read_bytes())
    first, last = column_place(damaged, column)
    content[first:last] = bytes(last - first)
    damaged.write_bytes(content)
    answer = ask(odd_dir, f"SELECT count(*), max(hash({column})) FROM history")
    assert answer.rows[0][0] == 12
    assert [each.path for each in answer.skipped] == [damaged]


def column_place(path: Path, column: str) -> tuple[int, int]:
    """Where a column's bytes lie in a file of one row group."""
    query = (
        "SELECT min(least(data_page_offset, coalesce(dictionary_page_offset, data_page_offset))), "
        "sum(total_compressed_size) FROM parquet_metadata(?) WHERE split_part(path_in_schema, ',', 1) = ?"
    )
    with duckdb.connect() as connection:
        name = str(path).replace("[", "[[]")
        first, n_bytes = connection.execute(query, [name, column]).fetchone() or (0, 0)
    return int(first), int(first) + int(n_bytes)


def test_an_empty_history_has_its_columns(tmp_path: Path) -> None:
    """Where there is no run, there are no rows."""
    assert ask(tmp_path, "SELECT case_id, measured_ns FROM history").columns == ("case_id", "measured_ns")


def test_a_file_beside_those_of_the_history_is_out_of_reach(odd_dir: Path) -> None:
    """Files are named to DuckDB, and not their folders."""
    beside = odd_dir / "runs" / "notes.txt"
    beside.write_text("secret")
    name = str(beside).replace("'", "''")
    with pytest.raises(HistoryError, match="sql: "):
        ask(odd_dir, f"SELECT * FROM read_text('{name}')")


def test_rows_are_bounded(odd_dir: Path) -> None:
    """Of more rows than asked for the first come, and that is said; of as many, all."""
    answer = ask(odd_dir, "SELECT * FROM range(100000000000)", most_rows=3)
    assert (len(answer.rows), answer.is_cut) == (3, True)
    answer = ask(odd_dir, "SELECT * FROM range(3)", most_rows=3)
    assert (len(answer.rows), answer.is_cut) == (3, False)


def test_a_query_without_end_is_ended(odd_dir: Path) -> None:
    """After the limit, in one line."""
    query = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"
    with pytest.raises(HistoryError, match=r"^sql: takes longer than 0.2 s, and was ended$"):
        ask(odd_dir, query, limit_s=0.2)


def test_a_time_with_a_zone_is_told_how_to_write(odd_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the package is missing that DuckDB needs for it."""
    monkeypatch.setitem(sys.modules, "pytz", None)
    with pytest.raises(HistoryError, match=r"has a time zone .*; write ::VARCHAR"):
        ask(odd_dir, "SELECT timestamptz '2020-01-01 00:00:00+00'")
