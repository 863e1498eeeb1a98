"""``perfsuite export``."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.records.llama_bench import BENCH_FORMS, read_llama_bench
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run
from tests.command_streams import Refused, Streams

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.parametrize("form", BENCH_FORMS)
def test_an_export_is_read_again(phase_run: Path, tmp_path: Path, capsys: Streams, form: str) -> None:
    """Standard output and file hold the same, which is an output of llama-bench."""
    arguments = ["llama-bench", "export", str(phase_run), "-o", form]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    path = tmp_path / "exported"
    assert main([*arguments, "--output", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 2 tests\n"
    assert path.read_text("utf-8") == printed
    prefill, decode = read_llama_bench(path)
    assert (prefill.test, decode.test) == ("pp16", "tg4@d16")
    assert (prefill.avg_ts, decode.avg_ts) == pytest.approx((750, 100))


def test_an_export_speaks_as_llama_bench_does(phase_run: Path, capsys: Streams) -> None:
    """With --like and --build-commit the words are those of the file and the name that of the build."""
    like = DATA / "llama-bench.json"
    assert main(["llama-bench", "export", str(phase_run), "--like", str(like), "--build-commit", "harness"]) == 0
    (recorded, *_), tests = read_llama_bench(like), json.loads(capsys.readouterr().out)
    assert {test["model_type"] for test in tests} == {recorded.model_type}
    assert {test["build_commit"] for test in tests} == {"harness"}


#: By format: how its text begins.
BEGINNINGS = {
    "pytest-benchmark": "{",
    "junit": '<?xml version="1.0" encoding="utf-8"?>\n<testsuites',
    "github": "❌ **perfsuite**",
    "github-annotations": "::notice title=",
    "markdown": "<!-- perfsuite: comment -->\n",
    "openmetrics": "# TYPE perfsuite_case_measured_seconds gauge\n",
    "csv": "run_id,started_at,",
}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    write_run(synthetic_run(names=HOSTILE_NAMES), folder)
    return folder


def test_a_path_steers_no_terminal(run_dir: Path, tmp_path: Path, capsys: Streams, refused: Refused) -> None:
    """An escape sequence in a name is written out, and a run with half a character is refused in words."""
    assert main(["export", "csv", str(run_dir), "-o", str(tmp_path / "\x1b[31mred.csv")]) == 0
    assert capsys.readouterr().out == rf"{tmp_path}/\x1b[31mred.csv: 1 run as csv" + "\n"
    path = run_dir / "run.json"
    path.write_text(path.read_text().replace('"device": ', '"device": "\\ud800", "was": ', 1))
    assert "run.json: is not JSON ('utf-8' codec can't encode" in refused(["export", "csv", str(path)])


def test_a_run_is_not_overwritten(run_dir: Path, refused: Refused) -> None:
    """An export never takes the place of what it is made of."""
    before = (run_dir / "run.json").read_bytes()
    assert "is read or written already" in refused(["export", "csv", str(run_dir), "-o", str(run_dir / "run.json")])
    assert (run_dir / "run.json").read_bytes() == before


@pytest.mark.parametrize("form", BEGINNINGS)
def test_a_run_is_written_in_each_format(run_dir: Path, tmp_path: Path, capsys: Streams, form: str) -> None:
    """Standard output and file hold the same, whether the folder or the file is named; a line names the file."""
    assert main(["export", form, str(run_dir)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(BEGINNINGS[form])
    path = tmp_path / "exported"
    assert main(["export", form, str(run_dir / "run.json"), "-o", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 1 run as {form}\n"
    assert path.read_bytes().decode() == printed


def test_sql_of_two_runs_is_joined_as_llama_cpp_joins_builds(phase_run: Path, capsys: Streams) -> None:
    """In SQLite, two builds meet on all settings, and the average rates are beside each other.

    *Source*: llama.cpp, scripts/compare-llama-bench.py, `get_rows`: a join on equal properties, grouped by them.
    """
    database = sqlite3.connect(":memory:")
    for commit in ("old", "new"):
        assert main(["export", "llama-bench-sql", str(phase_run), "--build-commit", commit]) == 0
        database.executescript(capsys.readouterr().out)
    shared = ("cpu_info", "model_filename", "model_type", "n_threads", "type_k", "n_prompt", "n_gen", "n_depth")
    equal = " AND ".join(f"tb.{name} = tc.{name}" for name in shared)
    rows = database.execute(
        f"SELECT tb.n_prompt, tb.n_gen, avg(tb.avg_ts), avg(tc.avg_ts) FROM llama_bench tb JOIN llama_bench tc "
        f"ON {equal} WHERE tb.build_commit = 'old' AND tc.build_commit = 'new' "
        f"GROUP BY {', '.join(f'tb.{name}' for name in shared)} ORDER BY tb.n_gen"
    ).fetchall()
    assert rows == [pytest.approx((16, 0, 750, 750)), pytest.approx((0, 4, 100, 100))]


def test_a_spreadsheet_is_asked_for(run_dir: Path, capsys: Streams) -> None:
    """With the option no text begins as a formula does, without it some does."""
    found = []
    for option in ([], ["--for-spreadsheet"]):
        assert main(["export", "csv", str(run_dir), *option]) == 0
        rows = csv.DictReader(io.StringIO(capsys.readouterr().out, newline=""))
        found.append(sum(row["reason"].startswith(("=", "+", "-", "@")) for row in rows))
    assert found[0] > 0 == found[1]
