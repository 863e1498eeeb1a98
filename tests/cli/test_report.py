"""``perfsuite report``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.records.observation import write_observation
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

Refused = Callable[[list[str]], str]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    run = synthetic_run(n_cases=60)
    write_run(run, tmp_path / "runs" / "tonight")
    write_observation(synthetic_observation(run), tmp_path / "runs" / "tonight")
    return tmp_path / "runs" / "tonight"


def test_the_page_lies_beside_the_run(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an output the page goes into the run's folder; the answer is its path and the verdict."""
    assert main(["report", str(run_dir)]) == 0
    page = run_dir / "report.html"
    assert capsys.readouterr().out.startswith(f"{page}: 5 cases regressed")
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_what_is_told_steers_no_terminal(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path's escape sequence is written out, and a name from right to left keeps its direction to itself."""
    other = write_run(synthetic_run(n_cases=12, names=["שלום"]), tmp_path / "other")
    assert main(["report", str(other), "-o", str(tmp_path / "\x1b[31mred.html")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(str(tmp_path / r"\x1b[31mred.html"))
    assert printed.count("\u2068") == printed.count("\u2069") > 0


@pytest.mark.parametrize("name", ["run.json", "observation.json"])
def test_a_run_is_not_overwritten(run_dir: Path, refused: Refused, name: str) -> None:
    """The page never takes the place of what it is made of."""
    before = (run_dir / name).read_text("utf-8")
    assert "is read or written already" in refused(["report", str(run_dir), "-o", str(run_dir / name)])
    assert (run_dir / name).read_text("utf-8") == before
