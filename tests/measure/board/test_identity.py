"""A board is known from others of its kind."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfsuite.errors import DeviceError
from perfsuite.measure.board.identity import board_identity


def with_file(root: Path, path: str, content: str) -> Path:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)
    return root


@pytest.mark.parametrize("path", ["etc/machine-id", "proc/device-tree/serial-number"])
def test_a_number_of_its_own_tells_boards_apart(tmp_path: Path, path: str) -> None:
    one = board_identity(with_file(tmp_path / "1", path, "100000001234abcd\0\n"))
    other = board_identity(with_file(tmp_path / "2", path, "100000001234abce\n"))
    assert one != other
    assert len(one) == 16
    assert "1234" not in one
    assert one == board_identity(with_file(tmp_path / "3", path, "100000001234abcd"))


def test_boards_that_were_written_from_one_image_are_told_apart(tmp_path: Path) -> None:
    """The board's serial number comes before the machine id, which such boards have in common."""
    roots = [with_file(tmp_path / serial, "etc/machine-id", "0123456789abcdef\n") for serial in ("a1", "b2")]
    first, second = (board_identity(with_file(root, "proc/device-tree/serial-number", root.name)) for root in roots)
    assert first != second


def phone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Let this machine be a phone whose ``getprop`` is a script; return the folder of its suite."""
    folder = tmp_path / "system"
    with_file(folder, "getprop", f"#!/bin/sh\n{script}\n")
    (folder / "getprop").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("socket.gethostname", lambda: "localhost")
    return tmp_path / "home"


@pytest.mark.parametrize("name", ["ro.serialno", "ro.boot.serialno"])
def test_phones_are_told_apart_by_their_serial_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Both properties count where they can be read, and nothing is kept then."""
    told = []
    for number in ("0A1B2C3D4E", "0A1B2C3D4F"):
        home = phone(tmp_path, monkeypatch, f'[ "$1" != {name} ] || echo {number}')
        told.append(board_identity(tmp_path, home))
        assert board_identity(tmp_path, home) == told[-1]
    assert told[0] != told[1]
    assert not home.exists()


@pytest.mark.parametrize(
    "script", ["echo", "echo unknown", "echo 0123456789ABCDEF", "echo 0000000000", "exit 1", "kill -9 $$"]
)
def test_a_phone_that_tells_no_number_has_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """A random number is made once and kept with the suite; two phones have two, for both are called localhost."""
    home = phone(tmp_path, monkeypatch, script)
    first = board_identity(tmp_path, home)
    assert board_identity(tmp_path, home) == first
    assert board_identity(tmp_path, tmp_path / "another") != first
    assert [each.name for each in home.iterdir()] == ["board-number"]


def test_two_that_begin_together_have_one_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = phone(tmp_path, monkeypatch, "exit 1")
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: board_identity(tmp_path, home), range(32)))) == 1


def test_a_number_that_is_none_does_not_hide_another(tmp_path: Path) -> None:
    """An empty file, zeros, and what systemd writes before the first boot are passed over."""
    for content in ("\n", "0000000000000000\0", "uninitialized\n"):
        root = with_file(tmp_path, "proc/device-tree/serial-number", content)
        with_file(root, "etc/machine-id", "5a5b0123456789abcdef0123456789ab\n")
        assert board_identity(root) == board_identity(
            with_file(tmp_path / "plain", "etc/machine-id", "5a5b0123456789abcdef0123456789ab")
        )


def test_where_nothing_can_be_kept_the_host_name_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But localhost, which every phone is called: that is one line."""
    blocked = with_file(tmp_path, "file", "").joinpath("file")
    told = set()
    for name in ("one", "two"):
        monkeypatch.setattr("socket.gethostname", lambda name=name: name)
        told.add(board_identity(tmp_path, blocked / "home"))
    assert len(told) == 2
    for name in ("localhost", "localhost.localdomain"):
        monkeypatch.setattr("socket.gethostname", lambda name=name: name)
        with pytest.raises(DeviceError, match=r"home: keeps no number for this board, .*; make the folder writable"):
            board_identity(tmp_path, blocked / "home")
