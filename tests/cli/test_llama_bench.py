"""``perfsuite llama-bench``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.records.llama_bench_file import BENCH_FORMS, read_llama_bench
from tests.command_streams import Refused, Streams

DATA = Path(__file__).parent.parent / "data"


def test_show_lists_tests_with_their_spread(capsys: Streams) -> None:
    """Each test has its tokens per second, deviation and number of samples."""
    assert main(["llama-bench", "show", str(DATA / "llama-bench.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    recorded = read_llama_bench(DATA / "llama-bench.json")
    assert len(lines) == 1 + len(recorded)
    for line, run in zip(lines[1:], recorded, strict=True):
        assert line.split()[-5:] == [run.test, f"{run.avg_ts:.2f}", "±", f"{run.stddev_ts:.2f}", "3"]


def test_samples_that_sql_lacks_are_a_dash(capsys: Streams) -> None:
    """Nothing is said of what is not known."""
    assert main(["llama-bench", "show", str(DATA / "llama-bench.sql")]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["samples", "-", "-"]


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


def test_mistakes_with_llama_bench_are_one_line(phase_run: Path, refused: Refused) -> None:
    """A file of another kind is named on either side."""
    assert f"{phase_run}: line 1: " in refused(["llama-bench", "show", str(phase_run)])
    assert "is a list, expected an object" in refused(["llama-bench", "export", str(DATA / "llama-bench.json")])
    assert "no such file" in refused(["llama-bench", "export", str(phase_run), "--model", "none.gguf"])
