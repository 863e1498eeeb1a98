"""Files of llama-bench, read and written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.llama_bench import BENCH_FORMS, bench_text, read_llama_bench, write_llama_bench

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.parametrize(
    ("form", "tests"),
    [
        ("json", ["pp16", "tg4", "pp16+tg4", "pp16@d32", "tg4@d32", "pp16+tg4@d32"]),
        ("jsonl", ["pp16", "tg4"]),
        ("sql", ["pp16", "tg4"]),
    ],
)
def test_the_content_shows_the_form(tmp_path: Path, form: str, tests: list[str]) -> None:
    """True outputs of llama-bench are read whatever the file is called."""
    path = tmp_path / "output"
    path.write_bytes((DATA / f"llama-bench.{form}").read_bytes())
    assert [run.test for run in read_llama_bench(path)] == tests


@pytest.mark.parametrize("form", BENCH_FORMS)
def test_what_is_written_is_read_again(tmp_path: Path, form: str) -> None:
    """Each form keeps each field; SQL has no repetitions."""
    runs = read_llama_bench(DATA / "llama-bench.jsonl")
    write_llama_bench(runs, tmp_path / "written", form=form)
    read = read_llama_bench(tmp_path / "written")
    assert read == (tuple(replace(run, samples_ns=()) for run in runs) if form == "sql" else runs)


def test_sql_is_text_that_sqlite_takes(tmp_path: Path) -> None:
    """Quotes survive, statements can be added twice, and reading leaves the file's bytes alone."""
    (first, *_) = read_llama_bench(DATA / "llama-bench.sql")
    text = bench_text([replace(first, model_filename="it's; 'x'.gguf")], "sql")
    with closing(sqlite3.connect(tmp_path / "b.sqlite")) as database:
        database.executescript(text + text)
        names = database.execute("SELECT model_filename FROM llama_bench").fetchall()
    assert names == [("it's; 'x'.gguf",)] * 2
    assert {run.model_filename for run in read_llama_bench(tmp_path / "b.sqlite")} == {"it's; 'x'.gguf"}
    path = tmp_path / "c.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((DATA / "llama-bench.sql").read_text("utf-8"))
    before = path.read_bytes()
    assert (len(read_llama_bench(path)), path.read_bytes()) == (2, before)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.sqlite", "c.sqlite"]


@pytest.mark.parametrize("form", BENCH_FORMS)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_cut_file_is_one_line_with_the_place(tmp_path: Path, form: str, share: float) -> None:
    content = (DATA / f"llama-bench.{form}").read_text("utf-8").rstrip()
    path = tmp_path / "cut"
    path.write_text(content[: int(len(content) * share)])
    with pytest.raises(PerfsuiteError) as raised:
        read_llama_bench(path)
    assert str(raised.value).startswith(f"{path}: line ")
    assert "was the benchmark stopped?" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"[]\n", "holds no test"),
        (b"| model | size |", "begins with '| model | size |'"),
        (b"SQLite format 3\0 and no more", "its tables cannot be read"),
        (b"CREATE TABLE llama_bench (a);\nINSERT INTO llama_bench VALUES (1, 2);", "line 2: table llama_bench has 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(PerfsuiteError) as raised:
        read_llama_bench(path)
    assert str(raised.value).startswith(f"{path}: {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH DATABASE '{}/new' AS a;",
        "DROP TABLE llama_bench;",
        "PRAGMA user_version;",
        "INSERT INTO llama_bench SELECT * FROM llama_bench;",
        "INSERT INTO llama_bench (n_gen) VALUES (zeroblob(1000000000));",
        "UPDATE llama_bench SET n_gen = 1;",
    ],
)
def test_statements_of_another_kind_are_not_carried_out(tmp_path: Path, statement: str) -> None:
    """A file cannot do more than fill a table in memory."""
    path = tmp_path / "evil.sql"
    path.write_text((DATA / "llama-bench.sql").read_text("utf-8") + statement.format(tmp_path) + "\n")
    with pytest.raises(PerfsuiteError, match="not authorized"):
        read_llama_bench(path)
    assert list(tmp_path.iterdir()) == [path]


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ((f"CREATE VIEW llama_bench AS {ENDLESS}",), "is a view or computed"),
        (
            ("CREATE TABLE llama_bench (a, b AS (hex(zeroblob(400000000))))", "INSERT INTO llama_bench VALUES (1)"),
            "is a view or computed",
        ),
        (("CREATE TABLE llama_bench (a)", "INSERT INTO llama_bench VALUES (zeroblob(70000000))"), "67,108,864 bytes"),
        (("CREATE TABLE other (a)",), "has no table"),
    ],
)
def test_a_database_is_a_table_of_moderate_size(tmp_path: Path, statements: tuple[str, ...], message: str) -> None:
    """One that would go on for ever, or fill the memory, is refused before it does."""
    path = tmp_path / "bench.sqlite"
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    with pytest.raises(PerfsuiteError, match=message):
        read_llama_bench(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE x (\n" + "a,\n" * 200_000, "line 1: the statement does not end"),
        ("INSERT INTO x VALUES ('" + ";\n" * 200_000, "line 1: the statement does not end"),
        (";\n" * 250_000, "begins with"),
        ("CREATE TABLE x (y);" + ";\n" * 250_000, "line 200000: is behind 200,000 statements, the most"),
        ("CREATE TABLE " + "[" * 500_000, "line 1: the statement does not end"),
        ("\n\nINSERT INTO x VALUES ('\0');", "line 3: .*null"),
        ('{"avg_ns": ' + "[" * 100_000, "line 1: is not JSON of llama-bench"),
        ("[" + "1" * 5000 + "]", "line 1: is not JSON of llama-bench|test 1: is int"),
    ],
)
def test_hostile_text_is_refused_in_one_pass(tmp_path: Path, text: str, message: str) -> None:
    """In one line with its place; half a million signs take no longer than to read them."""
    path = tmp_path / "bench"
    path.write_text(text)
    with pytest.raises(PerfsuiteError, match=message) as raised:
        read_llama_bench(path)
    assert "\n" not in str(raised.value)
