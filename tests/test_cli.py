"""The ``perfsuite`` command itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite import __version__
from perfsuite.cli import main

Streams = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "arguments",
    [[], ["dance"], ["synthesize", "smollm2-135m"], ["overhead", "--backend", "none"], ["overhead", "--pairs", "x"]],
)
def test_a_command_that_is_none_is_told_by_its_usage(arguments: list[str], capsys: Streams) -> None:
    """Unknown commands, missing arguments and values out of their choices end with 2 and the usage."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: perfsuite")


def test_the_version_is_told(capsys: Streams) -> None:
    """The version is that of the package."""
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"perfsuite {__version__}\n"


def _raising(error: BaseException) -> Callable[..., None]:
    def instead(*_: object) -> None:
        raise error

    return instead


def test_an_interrupt_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """Ctrl-C ends with 130 and a word, without a traceback."""
    monkeypatch.setattr("perfsuite.cli.catalog.names", _raising(KeyboardInterrupt()))
    assert main(["architectures"]) == 130
    assert capsys.readouterr().err == "perfsuite: interrupted\n"


@pytest.mark.parametrize("command", ["architectures", "synthesize"])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, command: str) -> None:
    """A pipe that is closed early, as by head, ends the command in silence."""
    arguments = ["smollm2-135m", "--layers", "1", "-o", str(tmp_path / "x.gguf")] if command == "synthesize" else []
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, "-m", "perfsuite.cli", command, *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
