"""What may explain a run and does not identify it, whatever the files of four boards hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfsuite.device.covariates import device_covariates
from tests.sys_trees import BOARDS, UNREADABLE, plant, put

#: What files hold that lie, or that belong to another kernel.
_LIES = ["0", "-1", "-274000", "nan", "inf", "1e400", "0x10", "9" * 30, "performance", "\0", "ü", "1 2 3"]

_BOUNDS = {
    "load_average": (0, 1e6),
    "cpu_mhz": (1e-9, 20_000),
    "temperature_celsius": (1, 150),
    "throttled": (0, 1),
    "battery_ratio": (0, 1),
    "power_watts": (1e-9, 2000),
}


@pytest.mark.parametrize(
    ("board", "values"),
    [
        ("rubikpi", (0.21, 2217.6, 44.8, 0.0, None, None)),
        ("orangepi5", (0.08, 2064.0, 45.307, 0.0, None, None)),
        ("raspberrypi5", (0.0, 2400.0, 52.35, 0.0, None, pytest.approx(5.511))),
        ("pixel8pro", (4.21, 1291.1, 58.0, 1.0, 0.63, pytest.approx(3.248, abs=0.001))),
    ],
)
def test_a_board_tells_what_it_can(tmp_path: Path, board: str, values: tuple[float | None, ...]) -> None:
    """The load of the last minute, the mean clock, the hottest sensor, whether it is held back, charge and power."""
    assert device_covariates(plant(board, tmp_path)) == dict(zip(_BOUNDS, values, strict=True))


def test_zones_and_processors_can_be_chosen(tmp_path: Path) -> None:
    found = device_covariates(plant("rubikpi", tmp_path), zones=("cpu4-thermal",), processors=(4, 5, 6))
    assert (found["cpu_mhz"], found["temperature_celsius"]) == (2400.0, 43.7)


def test_a_virtual_machine_tells_its_clock(tmp_path: Path) -> None:
    """What it does not tell is None, never a 0."""
    put(tmp_path, "proc/cpuinfo", "processor : 0\ncpu MHz : 2400.04")
    put(tmp_path, "proc/loadavg", "0.51234 9.0 9.0 1/2 3")
    found = device_covariates(tmp_path)
    assert {key: value for key, value in found.items() if value is not None} == {"load_average": 0.512, "cpu_mhz": 2400}


def test_this_machine_has_a_load() -> None:
    assert device_covariates()["load_average"] is not None


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00garbage\n", UNREADABLE, Path("/nowhere"), Path("."), None])
def test_a_board_all_of_whose_files_fail_is_not_measured(
    tmp_path: Path, board: str, content: bytes | Path | None
) -> None:
    root = plant(board, tmp_path)
    for path in [each for each in root.rglob("*") if each.is_file()]:
        put(root, str(path.relative_to(root)), content)
    assert device_covariates(root) == dict.fromkeys(_BOUNDS)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All boards, each once; the firmware that would be asked for each example is none."""
    planted = {board: plant(board, tmp_path_factory.mktemp(board)) for board in BOARDS}
    for root in planted.values():
        put(root, "usr/bin/vcgencmd", None)
    return planted


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(board=st.sampled_from(BOARDS), changed=st.data())
def test_no_content_of_any_file_raises(trees: dict[str, Path], board: str, changed: st.DataObject) -> None:
    root = trees[board]
    files = sorted(each for each in root.rglob("*") if each.is_file())
    garbage = st.one_of(st.binary(max_size=40), st.sampled_from(_LIES).map(str.encode))
    chosen = changed.draw(st.dictionaries(st.sampled_from(files), garbage, min_size=1, max_size=6))
    before = {path: path.read_bytes() for path in chosen}
    try:
        for path, content in chosen.items():
            path.write_bytes(content)
        for key, value in device_covariates(root).items():
            least, most = _BOUNDS[key]
            assert value is None or least <= value <= most
    finally:
        for path, content in before.items():
            path.write_bytes(content)
