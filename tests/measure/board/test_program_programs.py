"""Programs of other people on a board."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError

from ..conftest import write_script
from ..test_independent_rates import LIKWID, STREAM
from .conftest import BoardHome, Opened


def test_those_that_are_there_are_run(bundled: BoardHome, opened: Opened, tmp_path: Path) -> None:
    """With the threads that were asked for, and a working set beyond the board's caches."""
    (tmp_path / "bin").mkdir()
    for name, script in (("likwid-bench", LIKWID), ("stream", STREAM)):
        write_script(tmp_path / "bin" / name, script)
    bundled.install(before=f"PATH={shlex.quote(str(tmp_path / 'bin'))}:/usr/bin:/bin; export PATH")
    rates = opened(bundled).independent_rates(2, "none of this name", lambda _: None)
    assert [(rate.program, rate.kind, rate.n_threads, rate.best_per_s) for rate in rates] == [
        *(("likwid-bench", kind, 2, 1e8) for kind in ("read", "copy", "triad")),
        ("stream", "copy", 1, 1e6),
        ("stream", "triad", 1, 2e6),
        *(("likwid-bench", kind, 2, 1e8) for kind in ("read", "copy", "triad")),
        ("stream", "copy", 2, 1e6),
        ("stream", "triad", 2, 2e6),
    ]
    asked = (tmp_path / "bin" / "likwid-bench.asked").read_text().splitlines()
    assert [line.rpartition(":")[2] for line in asked] == ["1"] * 3 + ["2"] * 3
    assert all(int(line.split(":")[1].removesuffix("kB")) >= 67_000 for line in asked)


def test_no_other_program_is_run(bundled: BoardHome, opened: Opened) -> None:
    board = opened(bundled)
    asked = {"name": "sh", "arguments": ["-c", "true"], "environment": {}, "limit_s": 1.0, "file_option": None}
    for kind in ("find_program", "run_program"):
        with pytest.raises(MeasurementError, match=r"asked for the program 'sh'; known are likwid-bench, stream, clpe"):
            board.program.ask(kind, asked)
