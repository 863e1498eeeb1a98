"""Plans of nights, and nights whose pytest is a stub of some tenths of a second."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from perfsuite.nightly.cell_end import CellEnd
from perfsuite.nightly.conduct import Night
from perfsuite.nightly.night_plan import Cell, NightPlan
from perfsuite.nightly.night_state import NightOrigin

STUB = (sys.executable, str(Path(__file__).resolve().parents[1] / "nightly_stub.py"))

ORIGIN = NightOrigin(commit="0" * 40, suite_version="1")

RunNight = Callable[..., Mapping[str, CellEnd]]


def cells(
    device: str, *models: str, board: str | None = None, lane: str | None = None, arguments: tuple[str, ...] = ()
) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            board=board or device,
            device=device,
            model=model,
            scenario="siso",
            arguments=arguments,
            lane=lane or device,
            is_of_farm=any(word.startswith("--farm") for word in arguments),
        )
        for model in models
    )


def plan_of(
    *planned: Cell, at_once: int = 1, cell_limit_s: float = 60.0, night_limit_s: float = 60.0, wait_s: float = 60.0
) -> NightPlan:
    return NightPlan(
        cells=planned,
        at_once={cell.board: at_once for cell in planned},
        cell_limit_s=cell_limit_s,
        night_limit_s=night_limit_s,
        wait_s=wait_s,
    )


@pytest.fixture
def run_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunNight:
    """Run a night in the test's own folder."""
    monkeypatch.chdir(tmp_path)

    def run(plan: NightPlan, known: Mapping[str, CellEnd] | None = None) -> Mapping[str, CellEnd]:
        folder = tmp_path / "night"
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT)
        night = Night(plan, folder, dict(known or {}), lock=lock, tell=print, origin=ORIGIN, program=STUB)
        try:
            night.run()
        finally:
            os.close(lock)
        return night.ends

    return run
