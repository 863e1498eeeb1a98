"""How subcommands answer on standard output."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.cells import cell_len
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


@pytest.mark.parametrize("width", [16, 40, 80])
def test_a_narrow_terminal_has_every_letter(width: int, capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, headings and figures fold; no line is wider than the terminal."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    show(
        Sheet(("case", ">stored", ">99 % bounds"), [("operator/smollm2-135m/siso/漢字", "5.00 ms", "+1.0 % to +3.0 %")])
    )
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(cell_len, out.splitlines())) <= width
    shown = "case stored 99 % bounds operator/smollm2-135m/siso/漢字 5.00 ms +1.0 % to +3.0 %"
    assert Counter("".join(shown.split())) == Counter("".join(out.split()))
