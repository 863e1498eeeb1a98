"""Where calibrations are kept, and for what they are found again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.measure.calibration_store import calibration_path, device_file, find_calibration, store_calibration

from ..synthetic_calibration import calibration

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
