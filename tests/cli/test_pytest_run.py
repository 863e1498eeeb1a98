"""A run of pytest that a subcommand starts."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import pytest_run
from perfsuite.cli.pytest_run import run_pytest
from tests.command_streams import Streams


@pytest.mark.parametrize("named", [(), ("--perf-dir=mine",), ("--perf-dir", "mine")])
def test_the_answer_for_programs_is_the_runs_file(
    named: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """From the folder that was named, or one of its own; what pytest says goes to standard error."""
    monkeypatch.chdir(tmp_path)

    def run(command: list[str], _: object, output: Any) -> int:
        assert output is sys.stderr
        folder = Path(command[-1].removeprefix("--perf-dir="))
        assert folder == Path("mine") if named else folder.parent == Path(".perfsuite/runs")
        folder.mkdir(parents=True)
        (folder / "run.json").write_text("{}\n")
        return 1

    monkeypatch.setattr(pytest_run, "_status", run)
    options = argparse.Namespace(json=True, pytest_options=list(named))
    assert run_pytest(["--device=host"], options)[0] == 1
    assert capsys.readouterr().out == "{}\n"


def test_what_an_earlier_run_left_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """A mistake of pytest's command line leaves the folder as it was."""
    (tmp_path / "run.json").write_text("{}\n")
    monkeypatch.setattr(pytest_run, "_status", lambda *_: 4)
    assert run_pytest([], argparse.Namespace(json=True, pytest_options=[f"--perf-dir={tmp_path}"])) == (4, None)
    assert capsys.readouterr().out == ""


#: Keeps what it has when it is asked to end, which it says once it listens.
_KEEPING = """
import pathlib, signal, time
try:
    pathlib.Path({0!r}).touch()
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    time.sleep(0.5)
    pathlib.Path({1!r}).touch()
"""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_request_to_end_lets_pytest_keep_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """The run is not killed, and ends before the command does."""
    began, kept = tmp_path / "began", tmp_path / "kept"

    def asked(number: int, _: object) -> None:
        raise error

    def ask() -> None:
        while not began.exists():
            pass
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, asked)
    try:
        asking = threading.Thread(target=ask)
        asking.start()
        with pytest.raises(error):
            pytest_run._status([sys.executable, "-c", _KEEPING.format(str(began), str(kept))], None, None)
        asking.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert kept.exists()
