"""How far a command is."""

from __future__ import annotations

import argparse
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfsuite.cli.progress import progress, remarks
from tests.command_streams import Streams

LOUD, QUIET = argparse.Namespace(quiet=False), argparse.Namespace(quiet=True)


def test_elsewhere_than_on_a_terminal_lines_are_rare(capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage begins with a line, has one every 15 s with the time left, and the last one; numbers make no stage."""
    times = iter([0.0, 100.0, 101.0, 102.0, 110.0, 120.0, 121.0])
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    with progress("sweep", LOUD) as told:
        told.step("compared with NumPy, round 1", 0, 4)
        told.step("compared with NumPy, round 2", 1, 4)
        told.step("measured", 0, 4)
        told.step("measured", 2, 4)
        told.step("measured", 3, 4)
        told.step("measured", 4, 4)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "sweep: compared with NumPy, round 1 (0/4)",
        "sweep: measured (0/4)",
        "sweep: measured (3/4), about 6 s left",
        "sweep: measured (4/4), about 0 s left",
    ]


def test_steps_without_a_number_tell_the_time(capsys: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody knows how many there are, a line says for how long it has run."""
    times = iter([0.0, 0.1, 31.0])
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    with progress("calibrate", LOUD) as told:
        told.step("ceilings")
        told.step("round 1 of 5")
    assert capsys.readouterr().err.splitlines() == ["calibrate: ceilings", "calibrate: round 1 of 5 (31 s)"]


def test_remarks_are_all_told_unless_it_is_quiet(capsys: Streams) -> None:
    """A remark is a line however soon it comes, controls in it written out; with --quiet it is none, as all else."""
    for options in (LOUD, QUIET, argparse.Namespace()):
        with progress("trace", options) as told:
            told.remark("a\x1b[31m")
            told.remark("b")
        remarks("trace", options).remark("c")
    assert capsys.readouterr().err == "trace: a\\x1b[31m\ntrace: b\ntrace: c\n" * 2
    with progress("trace", QUIET) as told:
        told.step("x", 1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_error_output_ends_no_measurement() -> None:
    """What is reported beside the answer may be lost."""
    with open("/dev/full", "w") as full:
        line = [sys.executable, "-c", _SCRIPT]
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=full, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "threads 1\n")


_SCRIPT = """
import argparse, sys, threading
from perfsuite.cli.progress import progress
with progress("demo", argparse.Namespace(quiet=False)) as told:
    told.step("ceilings")
    for at in range(4):
        told.step("measured \\x1b[31m[bold]", at, 3)
    told.remark("a note")
    print("threads", threading.active_count(), file=sys.stdout, flush=True)
"""


def _on_a_terminal(**environment: str) -> tuple[str, str]:
    """Run the script with its standard error on a terminal of its own; return standard output and what was drawn."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT],
        stdout=subprocess.PIPE,
        stderr=its,
        env={**os.environ, "COLUMNS": "100", **environment},
        text=True,
    )
    os.close(its)
    out, _ = process.communicate(timeout=60)
    drawn = b"".join(_read(ours)).decode()
    os.close(ours)
    assert process.returncode == 0
    return out, drawn


def _read(terminal: int) -> Iterator[bytes]:
    try:
        while part := os.read(terminal, 4096):
            yield part
    except OSError:  # how Linux says that the other side is closed
        return


def test_a_terminal_has_a_bar_and_no_thread() -> None:
    """What is measured, how many of how many, and notes above; drawn at steps only, by the thread that measures."""
    out, drawn = _on_a_terminal(TERM="xterm-256color")
    assert out == "threads 1\n"
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn)
    assert "demo: ceilings" in text
    assert "demo: measured \\x1b[31m[bold]" in text
    assert "3/3" in text
    assert "demo: a note" in text
    assert drawn.rstrip().endswith(("\x1b[?25h", "\x1b[2K"))


def test_a_dumb_terminal_has_lines() -> None:
    """A terminal that moves no cursor gets lines as a file does; with NO_COLOR the bar has no colours."""
    _, drawn = _on_a_terminal(TERM="dumb")
    assert "\x1b" not in drawn
    assert "demo: ceilings\r\n" in drawn
    _, drawn = _on_a_terminal(TERM="xterm-256color", NO_COLOR="1")
    assert "demo: ceilings" in drawn
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", drawn)
