"""A board at the end of each kind of link, which is cheap: sshd on a loopback port, a phone behind adb, a console.

By the fixture ``linked_board`` of tests/conftest.py, which gives a test each in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from perfsuite.device.probe.profile_text import toml_value
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target

from .board_adb import fake_adb
from .board_loopback import LoopbackBoard
from .board_serial import SerialBoard

#: The kinds of link, by the way of a profile.
LINKED = ("ssh", "adb", "serial")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedBoard:
    home: Path
    reach: Reach

    def write_profile(self, path: Path) -> None:
        write_profile(path, self.reach)


def write_profile(path: Path, reach: Reach, *, tables: str = "") -> None:
    usual = asdict(Reach(way=""))
    said = {name: value for name, value in asdict(reach).items() if value != usual[name]} | {"home": reach.home}
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'extends = "generic-{reach.way}"', tables, "[reach]"]
    path.write_text("\n".join([*lines, *(f"{name} = {toml_value(value)}" for name, value in said.items()), ""]))


@contextmanager
def linked_board(way: str, folder: Path) -> Iterator[LinkedBoard]:
    if way == "ssh":
        board = LoopbackBoard()
        try:
            yield LinkedBoard(home=board.home, reach=board.reach())
        finally:
            board.stop()
    elif way == "adb":
        folder.mkdir()
        with fake_adb(folder) as home:
            yield LinkedBoard(home=home, reach=Reach(way="adb", address="0123"))
    else:
        console = SerialBoard(folder)
        try:
            yield LinkedBoard(home=folder, reach=console.reach())
        finally:
            open_target(console.reach()).close()
            console.stop()


def linked_params() -> list[object]:
    """Return the kinds of link as a fixture's parameters; what takes an sshd is counted among tests of boards."""
    return [pytest.param(way, marks=pytest.mark.runs_on_a_board) if way == "ssh" else way for way in LINKED]
