"""How subcommands answer on standard output."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from rich.table import Table

from perfsuite.cli.answer import Sheet, show, tell_picture
from tests.command_streams import Streams


def table(name: str = "decode") -> Table:
    """A table with one red row."""
    made = Table("case", "time", box=None, pad_edge=False)
    made.add_row(name, "5.00 ms", style="red")
    return made


def test_elsewhere_than_on_a_terminal_an_answer_is_plain(capsys: Streams) -> None:
    """No escape sequence is in a table; a picture is named beside JSON on standard error, with --quiet not at all."""
    show(table())
    out = capsys.readouterr().out
    assert out.split() == ["case", "time", "decode", "5.00", "ms"]
    for quiet, json in ((False, False), (False, True), (True, False)):
        tell_picture(argparse.Namespace(quiet=quiet, json=json), Path("a.png"), "a title")
    assert capsys.readouterr() == ("a.png: a title\n", "a.png: a title\n")


def test_colours_are_forced_and_forbidden(capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """FORCE_COLOR asks for them where there is no terminal; NO_COLOR leaves the colours out."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    show(table())
    assert "\x1b[31m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    show(table())
    assert "\x1b[31m" not in capsys.readouterr().out


@pytest.mark.parametrize(("term", "has_colour"), [("xterm", True), ("dumb", False)])
def test_a_terminal_has_colours_unless_it_is_dumb(
    term: str, has_colour: bool, capsys: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    show(table())
    assert ("\x1b[31m" in capsys.readouterr().out) is has_colour


@pytest.mark.parametrize("colour", ["", "1"])
def test_a_name_in_a_table_steers_no_terminal(colour: str, capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """An escape sequence or a mark of direction in a cell is written out, with colours around it or without."""
    monkeypatch.setenv("FORCE_COLOR", colour)
    show(table("a\x1b[2J\u202eb"))
    assert r"a\x1b[2J\u202eb" in capsys.readouterr().out


def test_a_file_has_whole_rows(capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal nothing is folded or cut, whatever COLUMNS says."""
    monkeypatch.setenv("COLUMNS", "40")
    name = "/".join(["part"] * 60)
    made = Table("case", "time", box=None, pad_edge=False)
    made.columns[0].overflow = "fold"
    made.add_row(name, "5.00 ms")
    show(made)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "part" in line]
    assert row.split() == [name, "5.00", "ms"]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_many_rows_are_written_as_a_table_is(
    is_terminal: bool, capsys: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich takes a millisecond a row: from a thousand on the same lines are written without it, where they fit."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")
    cells = [("été", "5 µs"), ("漢字", None), ("a\x1b[2J", "-1.0 %"), ("אב", 7), ("", "[red]1[/]")]
    sheet = Sheet(("case", ">time", "<what it is"), [(*row, "x" * at) for at, row in enumerate(cells)] * 200)
    monkeypatch.setattr("perfsuite.cli.answer._MANY_ROWS", 1001)
    show(sheet)
    drawn = capsys.readouterr().out
    monkeypatch.setattr("perfsuite.cli.answer._MANY_ROWS", 1000)
    with monkeypatch.context() as patch:
        patch.setattr("perfsuite.cli.answer._print_table", lambda table: pytest.fail("rich was asked"))
        show(sheet)
    assert capsys.readouterr().out == drawn
    wide = Sheet(("case",), [("part/" * 30,)] * 1000)
    show(wide)
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines()) == is_terminal
