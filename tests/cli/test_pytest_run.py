"""A run of pytest that a subcommand starts."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli.pytest_run import run_pytest
from tests.command_streams import Streams


@pytest.mark.parametrize("named", [(), ("--perf-dir=mine",), ("--perf-dir", "mine")])
def test_the_answer_for_programs_is_the_runs_file(
    named: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """From the folder that was named, or one of its own; what pytest says goes to standard error."""
    monkeypatch.chdir(tmp_path)

    def run(command: list[str], *, stdout: Any, **_: object) -> Any:
        assert stdout is sys.stderr
        folder = Path(command[-1].removeprefix("--perf-dir="))
        assert folder == Path("mine") if named else folder.parent == Path(".perfsuite/runs")
        folder.mkdir(parents=True)
        (folder / "run.json").write_text("{}\n")
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr("perfsuite.cli.pytest_run.subprocess.run", run)
    options = argparse.Namespace(json=True, pytest_options=list(named))
    assert run_pytest(["--device=host"], options) == 1
    assert capsys.readouterr().out == "{}\n"


def test_a_run_that_left_nothing_answers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """The exit code is pytest's all the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "perfsuite.cli.pytest_run.subprocess.run", lambda command, **_: subprocess.CompletedProcess(command, 4)
    )
    assert run_pytest([], argparse.Namespace(json=True, pytest_options=[])) == 4
    assert capsys.readouterr().out == ""


def test_what_an_earlier_run_left_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """A mistake of pytest's command line leaves the folder as it was."""
    (tmp_path / "run.json").write_text("{}\n")
    monkeypatch.setattr(
        "perfsuite.cli.pytest_run.subprocess.run", lambda command, **_: subprocess.CompletedProcess(command, 4)
    )
    assert run_pytest([], argparse.Namespace(json=True, pytest_options=[f"--perf-dir={tmp_path}"])) == 4
    assert capsys.readouterr().out == ""
