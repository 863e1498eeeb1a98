"""The best ceilings of a machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.ceiling_store import (
    best_ceilings,
    best_of_board,
    calibration_path,
    device_file,
    find_calibration,
    measured_ceilings,
    store_calibration,
    stored_ceilings,
)
from perfsuite.measure.plan import Plan
from perfsuite.records.ceilings import Ceilings

from ..synthetic_calibration import calibration
from ..synthetic_calibration_run import answer
from ..synthetic_roofline import processor_ceilings

DEVICE = {"soc": "A", "governor": "performance"}


def test_all_that_decides_makes_another_file() -> None:
    paths = {
        device_file(Path("kept"), fingerprint, *which, board=board)
        for fingerprint in (DEVICE, {"soc": "B"}, {})
        for which in ((), (1,), (11,), ("1",), ("build", 1))
        for board in (None, "b1", "b2")
    }
    assert len(paths) == 45
    assert {each.parent for each in paths} == {Path("kept")}


BUILD = "0123456789abcdef"
CALIBRATION = calibration(fingerprint=DEVICE)


def find(
    folder: Path, fingerprint: dict[str, str] = DEVICE, build_id: str = BUILD, n_threads: int = 2
) -> Calibration | None:
    return find_calibration(fingerprint, build_id, n_threads, folder)


def test_a_calibration_is_found_again(tmp_path: Path) -> None:
    """What was stored last is read as it was, whatever the order of the fingerprint's fields; before it is none."""
    assert find(tmp_path) is None
    store_calibration(calibration(points=CALIBRATION.points[:5], fingerprint=DEVICE), BUILD, tmp_path)
    path = store_calibration(CALIBRATION, BUILD, tmp_path)
    assert path.is_relative_to(tmp_path)
    assert find(tmp_path) == CALIBRATION
    assert find(tmp_path, dict(reversed(DEVICE.items()))) == CALIBRATION
    assert len(list((tmp_path / "calibrations").iterdir())) == 1


def test_a_board_has_its_own(tmp_path: Path) -> None:
    mine = store_calibration(CALIBRATION, BUILD, tmp_path, board="b1")
    assert find_calibration(DEVICE, BUILD, 2, tmp_path, board="b1") == CALIBRATION
    assert find_calibration(DEVICE, BUILD, 2, tmp_path, board="b2") is None
    assert find(tmp_path) is None
    assert store_calibration(CALIBRATION, BUILD, tmp_path) != mine
    assert find(tmp_path) == CALIBRATION


def test_a_quick_one_takes_no_place_of_a_whole_one(tmp_path: Path) -> None:
    """What was measured for one workload is found for that alone, and is beside what was measured for all."""
    quick = replace(CALIBRATION, points=CALIBRATION.points[:5], is_quick=True)
    store_calibration(quick, BUILD, tmp_path, quick_for="one")
    assert find(tmp_path) is None
    store_calibration(CALIBRATION, BUILD, tmp_path)
    store_calibration(quick, BUILD, tmp_path, quick_for="one")
    assert find(tmp_path) == CALIBRATION
    assert find_calibration(DEVICE, BUILD, 2, tmp_path, quick_for="one") == quick
    assert find_calibration(DEVICE, BUILD, 2, tmp_path, quick_for="another") is None


def test_this_machine_keeps_the_file_that_it_had() -> None:
    """What was stored before boards had calibrations is found where it was stored."""
    assert calibration_path(DEVICE, BUILD, 2, Path()) == Path("calibrations") / "05ee291f194f0ae7.json"


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Let workers follow a law, and return what they are asked for."""
    asked: list[Plan] = []

    def run(_: LocalBoard, plan: Plan) -> dict[str, Any]:
        asked.append(plan)
        return answer(plan)

    monkeypatch.setattr(LocalBoard, "run", run)
    return asked


@pytest.mark.parametrize("is_local", [True, False])
def test_the_best_is_kept_of_the_very_board(plans: list[Plan], tmp_path: Path, is_local: bool) -> None:
    """By its identity over a link, and as this machine's otherwise; a slower run after it has the same best."""
    board = LocalBoard(cache_dir=tmp_path / "board", is_local=is_local)
    measured, facts = measured_ceilings(board, 2), board.facts()
    assert best_of_board(board, measured, tmp_path) == measured
    assert best_of_board(board, replace(measured, fp32_flops_per_s=1.0), tmp_path) == measured
    of_board = stored_ceilings(facts.fingerprint, 2, tmp_path, board=facts.identity)
    of_machine = stored_ceilings(facts.fingerprint, 2, tmp_path)
    assert (of_board, of_machine) == ((None, measured) if is_local else (measured, None))


MACHINE = {"soc": "a chip", "n_cores": "2"}


def _ceilings(rate: float, n_threads: int = 2, size: int = 10**8) -> Ceilings:
    return processor_ceilings((size, rate), n_threads=n_threads)


@pytest.mark.parametrize(
    ("machine", "changed", "best"),
    [
        (MACHINE, {}, 5e10),
        ({**MACHINE, "n_cores": "4"}, {}, 2e10),
        (MACHINE, {"n_threads": 1}, 2e10),
        (MACHINE, {"size": 5}, 2e10),
    ],
)
def test_the_best_of_all_runs_is_kept(
    tmp_path: Path, machine: dict[str, str], changed: dict[str, int], best: float
) -> None:
    """What another machine, or another number of threads or bytes, has shown does not count."""
    best_ceilings(_ceilings(5e10), MACHINE, tmp_path)
    lower = _ceilings(2e10, **changed)
    assert best_ceilings(lower, machine, tmp_path) == _ceilings(best, **changed)


def test_a_broken_store_is_replaced(tmp_path: Path) -> None:
    """A file that is no JSON is as good as none and written anew; where none can be, the run has its own ceilings."""
    best_ceilings(_ceilings(5e10), MACHINE, tmp_path)
    (stored,) = (tmp_path / "ceilings").iterdir()
    stored.write_text("{")
    assert best_ceilings(_ceilings(2e10), MACHINE, tmp_path) == _ceilings(2e10)
    assert best_ceilings(_ceilings(1e10), MACHINE, tmp_path) == _ceilings(2e10)
    assert best_ceilings(_ceilings(1e10), MACHINE, stored) == _ceilings(1e10)


def test_boards_of_a_kind_have_their_own(tmp_path: Path) -> None:
    """What one has shown is no ceiling of another, nor of this machine, whose file is called as by older versions."""
    best_ceilings(_ceilings(5e10), MACHINE, tmp_path, board="a")
    for board in ("b", None):
        assert stored_ceilings(MACHINE, 2, tmp_path, board=board) is None
        assert best_ceilings(_ceilings(2e10), MACHINE, tmp_path, board=board) == _ceilings(2e10)
    assert stored_ceilings(MACHINE, 2, tmp_path, board="a") == _ceilings(5e10)
    assert (tmp_path / "ceilings" / "d454dad2aeec0223.json").exists()
