"""``perfsuite devices list`` and ``show``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.cli import main
from tests.command_streams import Streams


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``./devices`` with a board of your own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "devices").mkdir()
    text = "extends = 'rubikpi'\n[reach]\nport = 2222\n[conditions]\nstart_below_celsius = 50\n"
    (tmp_path / "devices" / "desk-pi.toml").write_text(text)
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


def test_every_value_has_its_file(capsys: Streams) -> None:
    """Your own file, the one that it extends, the defaults of judging, and what nobody said."""
    assert main(["devices", "show", "desk-pi"]) == 0
    rows = {line.split()[0]: line.rstrip() for line in capsys.readouterr().out.splitlines() if line}
    assert rows["reach.port"].endswith("devices/desk-pi.toml")
    assert rows["conditions.start_below_celsius"].split()[1:] == ["50.0", "devices/desk-pi.toml"]
    assert rows["conditions.governor"].split()[1:] == ["performance", "the", "suite", "(rubikpi)"]
    assert rows["judging.session_spread_ratio"].endswith("the suite (host)")
    assert rows["reach.address"].split()[1:] == ["desk-pi", "-"]
    assert rows["memory_bytes"].split()[1:3] == ["8.00", "GiB"]


def test_a_device_without_peaks_has_no_table_of_them(capsys: Streams, folder: Path) -> None:
    """The host's peaks are measured; what a description says is shown as it is."""
    assert main(["devices", "show", "host"]) == 0
    assert "theoretical" not in capsys.readouterr().out
    (folder / "desk-pi.toml").write_text("extends = 'rubikpi'\ndescription = 'a [red] board, [b]bold[/b]'\n")
    assert main(["devices", "show", "desk-pi"]) == 0
    assert "a [red] board, [b]bold[/b]" in capsys.readouterr().out


def test_programs_get_json(capsys: Streams) -> None:
    """The same: values with their files, peaks with their sources."""
    assert main(["devices", "show", "desk-pi", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["name"] == "desk-pi"
    assert plain["files"] == ["devices/desk-pi.toml", "the suite (rubikpi)"]
    values = {each["key"]: each for each in plain["values"]}
    assert values["reach.port"] == {"key": "reach.port", "value": 2222, "file": "devices/desk-pi.toml"}
    assert values["reach.identity_file"] == {"key": "reach.identity_file", "value": None, "file": None}
    assert plain["peaks_file"] == "the suite (rubikpi)"
    assert [each["official"] for each in plain["peaks"]] == [True, False, False]
