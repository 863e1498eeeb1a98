"""``perfsuite devices`` as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.cli.devices import ACTIONS
from tests.command_streams import Streams


def told(arguments: list[str], capsys: Streams) -> str:
    """What a command prints."""
    capsys.readouterr()
    assert main(["devices", *arguments]) == 0
    return capsys.readouterr().out


def test_without_an_action_the_devices_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told([], capsys) == told(["list"], capsys)


def test_every_action_is_in_the_help(capsys: Streams) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["devices", "--help"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in ACTIONS)


def test_a_board_is_added_listed_and_shown(tmp_path: Path) -> None:
    """The whole way, as in a shell, with a home of its own."""
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def run(*words: str) -> str:
        line = [sys.executable, "-m", "perfsuite.cli", "devices", *words]
        done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    run("add", "desk-pi", "--like", "rubikpi", "--address", "me@desk:2222")
    assert "ssh me@desk:2222" in run()
    assert "devices/desk-pi.toml" in run("show", "desk-pi")
