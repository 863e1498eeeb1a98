"""How far a sweep is."""

from __future__ import annotations

import io
import sys
import time

import pytest

from perfsuite.cli.sweep_progress import progress

from .conftest import Streams


class Terminal(io.StringIO):
    """What looks like one."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_elsewhere_than_on_a_terminal_lines_are_rare(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """One where a stage begins, then one each 15 s with the time left."""
    now_s = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    with progress("sweep") as told:
        for n_done in range(61):
            told("measuring", n_done, 60)
            now_s[0] += 1.0
        told("drawing", 0, 1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "sweep: measuring (0/60)",
        "sweep: measuring (15/60), about 45 s left",
        "sweep: measuring (30/60), about 30 s left",
        "sweep: measuring (45/60), about 15 s left",
        "sweep: measuring (60/60), about 0 s left",
        "sweep: drawing (0/1)",
    ]


def test_a_terminal_has_a_bar_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is done of how much."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress("sweep") as told:
        told("verifying", 0, 2)
        told("verifying", 2, 2)
        told("measuring", 1, 9)
    shown = terminal.getvalue()
    assert "sweep: verifying" in shown
    assert "2/2" in shown
    assert "1/9" in shown
