"""A history is read whatever else is in its folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import duckdb
import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history import append_run, open_history, runs_of
from perfsuite.report.history.append import LOOSE
from perfsuite.report.history.columns import MARK
from perfsuite.report.history.reader import answer_query
from perfsuite.testing.run_files import synthetic_run


@pytest.fixture
def odd_dir(tmp_path: Path) -> Path:
    """A history of one run, in a folder whose name means something to SQL and to patterns."""
    append_run(synthetic_run(n_cases=12), tmp_path / "it's [a]")
    return tmp_path / "it's [a]"


def test_a_select_is_answered_up_to_a_bound(odd_dir: Path) -> None:
    """Names of columns and rows come back; of more rows than asked for the first come, and that is said."""
    answer = answer_query(open_history(odd_dir), "SELECT count(*) AS n, 'x' AS text FROM history")
    assert (answer.columns, answer.rows) == (("n", "text"), ((12, "x"),))
    answer = answer_query(open_history(odd_dir), "SELECT * FROM range(100000000000)", most_rows=3)
    assert (len(answer.rows), answer.is_cut) == (3, True)
    answer = answer_query(open_history(odd_dir), "SELECT * FROM range(3)", most_rows=3)
    assert (len(answer.rows), answer.is_cut) == (3, False)


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO 'x.csv'",
        "SELECT 1; SELECT 2",
        "ATTACH 'x.db'",
        "",
    ],
)
def test_what_is_no_single_select_is_refused(odd_dir: Path, query: str) -> None:
    """Nothing is written, attached, installed or set."""
    with pytest.raises(HistoryError, match="expected a single SELECT"):
        answer_query(open_history(odd_dir), query)


@pytest.mark.parametrize(
    "query",
    [
        "SELEC 1",
        "SELECT nothing FROM history",
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT * FROM read_csv('https://example.invalid/x.csv')",
        "SELECT * FROM read_text('{runs}/notes.txt')",
    ],
)
def test_a_mistake_and_what_is_no_file_of_the_history_are_one_line(odd_dir: Path, query: str) -> None:
    """DuckDB knows the files and not their folders: it cannot read their neighbours either."""
    (odd_dir / "runs" / "notes.txt").write_text("secret")
    with pytest.raises(HistoryError, match=r"^sql: [^\n]+$"):
        answer_query(open_history(odd_dir), query.replace("{runs}", str(odd_dir / "runs").replace("'", "''")))


@pytest.mark.parametrize("column", ["measured_ns", "samples_ns"])
def test_a_file_that_is_damaged_where_the_query_reads_is_left_out(odd_dir: Path, column: str) -> None:
    """Whatever the column, the file is named and the others answer."""
    damaged = append_run(synthetic_run(n_cases=12, seed=5), odd_dir)
    content = bytearray(damaged.read_bytes())
    first, last = column_place(damaged, column)
    content[first:last] = bytes(last - first)
    damaged.write_bytes(content)
    history = open_history(odd_dir)
    answer = answer_query(history, f"SELECT count(*), max(hash({column})) FROM history")
    assert answer.rows[0][0] == 12
    assert [each.path for each in history.skipped] == [damaged]


def column_place(path: Path, column: str) -> tuple[int, int]:
    query = (
        "SELECT min(least(data_page_offset, coalesce(dictionary_page_offset, data_page_offset))), "
        "sum(total_compressed_size) FROM parquet_metadata(?) WHERE split_part(path_in_schema, ',', 1) = ?"
    )
    with duckdb.connect() as connection:
        name = str(path).replace("[", "[[]")
        first, n_bytes = connection.execute(query, [name, column]).fetchone() or (0, 0)
    return int(first), int(first) + int(n_bytes)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3",
        "SELECT max(regexp_replace(repeat('ab', 60000000), '(a|b)+?c', 'x', 'g'))",
    ],
)
def test_a_query_without_end_is_ended(odd_dir: Path, query: str) -> None:
    """After the limit, in one line, also within a function that DuckDB cannot interrupt."""
    with pytest.raises(HistoryError, match=r"^sql: takes longer than 0.2 s, and was ended$"):
        answer_query(open_history(odd_dir), query, limit_s=0.2)


@pytest.fixture
def history_dir(tmp_path: Path) -> Path:
    append_run(synthetic_run(n_cases=12), tmp_path)
    return tmp_path


def reasons(history_dir: Path) -> list[str]:
    """What is left out, beside the one run that is always read."""
    history = open_history(history_dir)
    assert len(runs_of(history)) == 1
    return [each.reason for each in history.skipped]


def test_a_folder_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    history = open_history(tmp_path / "none")
    assert runs_of(history) == ()
    (tmp_path / "file").write_text("")
    history = open_history(tmp_path / "file")
    with pytest.raises(HistoryError, match="is a file"):
        runs_of(history)


def test_a_file_with_fewer_columns_is_read(history_dir: Path, tmp_path: Path) -> None:
    """What an older file lacks is not known of its runs."""
    (path,) = (history_dir / LOOSE).glob("*.parquet")
    older = f"SELECT * EXCLUDE steal_ratio REPLACE ('older' AS run_id) FROM read_parquet('{path}')"
    key = MARK.partition(",")[0]
    target = history_dir / LOOSE / "older.parquet"
    duckdb.execute(f"COPY ({older}) TO '{target}' (FORMAT parquet, KV_METADATA {{'{key},columns=00000000': 'yes'}})")
    history = open_history(history_dir)
    assert len(runs_of(history)) == 2
    known = history.rows("SELECT run_id, count(steal_ratio) FROM history GROUP BY run_id ORDER BY run_id")
    assert [count for _, count in known] == [12, 0]
    path.unlink()
    history = open_history(history_dir)
    assert history.rows("SELECT DISTINCT steal_ratio FROM history") == [(None,)]


def test_hidden_files_and_folders_are_no_part(history_dir: Path) -> None:
    """What another process is still writing is nothing to tell of, and what lies behind a dot is not looked at."""
    (history_dir / LOOSE / ".x.parquet").write_bytes(b"half")
    assert reasons(history_dir) == []
    (history_dir / ".work").mkdir()
    (history_dir / ".work" / "x.parquet").write_bytes(b"half")
    assert reasons(history_dir) == []


def test_the_database_loads_nothing_and_is_limited(history_dir: Path) -> None:
    """No extension is installed or loaded by itself, and memory is limited."""
    history = open_history(history_dir)
    names = ("autoinstall_known_extensions", "autoload_known_extensions")
    rows = history.rows("SELECT value FROM duckdb_settings() WHERE list_contains($names, name)", {"names": [*names]})
    assert rows == [("false",), ("false",)]
    ((limit,),) = history.rows("SELECT current_setting('memory_limit')")
    assert limit == "244.1 MiB"


def test_what_is_no_file_of_this_version_is_left_out(history_dir: Path) -> None:
    """Each is named, the rest is read, and nobody waits for a pipe."""
    for name, key in (("other", "key"), ("newer", "perfsuite.history.schema=99,columns=00000000")):
        path = history_dir / LOOSE / f"{name}.parquet"
        duckdb.execute(f"COPY (SELECT 1 AS other) TO '{path}' (FORMAT parquet, KV_METADATA {{'{key}': 'yes'}})")
    (history_dir / LOOSE / "short.parquet").write_bytes(b"PAR1 and no more")
    (history_dir / LOOSE / "empty.parquet").write_bytes(b"")
    os.mkfifo(history_dir / LOOSE / "pipe.parquet")
    (history_dir / LOOSE / "link.parquet").symlink_to("nowhere")
    (history_dir / os.fsdecode(b"\xff.parquet")).write_bytes(b"")
    (history_dir / "linked.parquet").symlink_to(next((history_dir / LOOSE).glob("*Z-*.parquet")))
    told = sorted(reasons(history_dir))
    assert told == [
        "has a name that is not UTF-8, which DuckDB does not read",
        "is a link that leads nowhere",
        "is not a file but a folder, a pipe or a device",
        *["is not a whole Parquet file of a history"] * 3,
        "is of schema 99, this version of perfsuite reads 1",
    ]


def test_a_folder_that_cannot_be_listed_is_an_error(history_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refuse(path: int | str = ".") -> object:
        if str(path) == str(history_dir):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    history = open_history(history_dir)
    with pytest.raises(HistoryError, match=r"cannot be listed \(Permission"):
        runs_of(history)
