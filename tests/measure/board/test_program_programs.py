"""Programs of other people on a board without Python."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.program_programs import BoardPrograms
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.independent_rates import rates_on_device

from ..test_independent_rates import CLPEAK, DEVICE, LIKWID, STREAM
from .conftest import BoardHome, Opened


@pytest.fixture
def with_programs(bundled: BoardHome, opened: Opened, tmp_path: Path) -> Opened:
    """Return what opens a board with scripts in the place of programs, and nothing else of their names."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def installed(**scripts: str) -> RemoteBoard:
        for name, script in scripts.items():
            path = folder / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        bundled.install(before=f"PATH={shlex.quote(str(folder))}:/usr/bin:/bin; export PATH")
        return opened(bundled)

    return installed


def measured(board: RemoteBoard) -> list[tuple[str, str, int | None, float]]:
    rates = board.independent_rates(2, "none of this name", lambda _: None)
    return [(rate.program, rate.kind, rate.n_threads, rate.best_per_s) for rate in rates]


def test_those_that_are_there_are_run(with_programs: Opened, tmp_path: Path) -> None:
    """With the threads that were asked for, and a working set beyond the board's caches; NumPy takes Python."""
    assert measured(with_programs(likwid_bench=LIKWID, stream=STREAM)) == [
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


@pytest.mark.parametrize(
    ("scripts", "told"),
    [
        (
            {"likwid_bench": "echo no hwthreads >&2; exit 3", "stream": "exit 0"},  # as ImageMagick's stream
            "likwid-bench: returned 3: no hwthreads",
        ),
        ({}, "no rates of other programs: none of likwid-bench, stream, clpeak is there, and NumPy takes Python"),
    ],
)
def test_one_that_fails_is_told_and_measures_nothing(
    with_programs: Opened, bundled: BoardHome, scripts: dict[str, str], told: str
) -> None:
    assert measured(with_programs(**scripts)) == []
    assert told in bundled.told
    assert scripts or len(bundled.told) == 1


def test_what_a_program_writes_comes_back(with_programs: Opened) -> None:
    """clpeak writes a file there, with the environment of the device; its folder is gone afterwards."""
    board = with_programs(clpeak=CLPEAK)
    asked: dict[str, Any] = {}

    def direct(kind: str, arguments: Any) -> Any:
        asked[kind] = arguments
        return board._link.ask(kind, arguments, limit_s=60.0)

    programs = BoardPrograms(ask=direct, run_plan=pytest.fail, architecture="aarch64")
    rates = rates_on_device(DEVICE, {"GFLOPS": "4.5"}, programs=programs)
    assert [rate.best_per_s for rate in rates] == [3e9, 4.5e9]
    assert asked["run_program"]["limit_s"] == 180.0


def test_no_other_program_is_run(with_programs: Opened) -> None:
    board = with_programs()
    asked = {"name": "sh", "arguments": ["-c", "true"], "environment": {}, "limit_s": 1.0, "file_option": None}
    for kind in ("find_program", "run_program"):
        with pytest.raises(MeasurementError, match=r"asked for the program 'sh'; known are likwid-bench, stream, clpe"):
            board._link.ask(kind, asked, limit_s=60.0)
