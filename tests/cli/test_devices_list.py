"""``perfsuite devices list``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.cli import main
from tests.command_streams import Streams


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``./devices`` of the working folder; the user has no profiles."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "devices").mkdir()
    return tmp_path / "devices"


def test_ones_own_is_told_with_its_file(folder: Path, capsys: Streams) -> None:
    """Also where it hides one that ships; a broken one hides no other, and steers no terminal."""
    (folder / "rubikpi.toml").write_text("extends = 'rubikpi'\n[reach]\naddress = 'me@desk'\n")
    assert main(["devices", "list"]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("rubikpi ")]
    assert "ssh me@desk" in row
    assert "devices/rubikpi.toml" in row
    (folder / "board.toml").write_text('[reach]\nport = "\\u001b[31m"\n')
    assert main(["devices", "list"]) == 0
    out = capsys.readouterr().out
    assert "broken: devices/board.toml: reach.port is '\\x1b[31m', expected a whole number from 1 to 65535" in out
    assert "rubikpi" in out
    assert main(["devices", "list", "--json"]) == 0
    devices = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert (devices["rubikpi"]["kind"], devices["rubikpi"]["complaint"]) == ("rubikpi", None)
    assert devices["board"]["complaint"].startswith("devices/board.toml: reach.port is ")
    assert devices["board"]["reach"] is None
