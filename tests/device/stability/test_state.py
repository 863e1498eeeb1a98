"""The state of four boards, whatever their files hold."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfsuite.device.stability.state import DeviceState, read_state
from tests.sys_trees import BOARDS, UNREADABLE, plant, put

#: What files hold that lie, or that belong to another kernel.
_LIES = ["0", "-1", "-274000", "nan", "inf", "1e400", "0x10", "9" * 30, "performance", "\0", "ü", "1 2 3"]


def test_a_phone_under_load(tmp_path: Path) -> None:
    """Everything that there is is told."""
    state = read_state(plant("pixel8pro", tmp_path), zones=("quiet_therm",), processors=(4, 5, 8))
    assert state == DeviceState(
        load_average=4.21,
        rates_khz=(("policy4", 910_000), ("policy8", 1_164_000)),
        cpu_mhz=994.7,
        temperature_celsius=40.5,
        hottest_zone="quiet_therm",
        is_throttled=True,
        throttled_by=state.throttled_by,
        n_throttle_events=None,
        battery_ratio=0.63,
        is_charging=False,
        power_watts=pytest.approx(3.248, abs=0.001),
        available_bytes=5 * 2**30,
    )
    assert len(state.throttled_by) == 4


@pytest.mark.parametrize(
    ("board", "mhz", "celsius", "watts"),
    [
        ("rubikpi", 2217.6, 44.8, None),
        ("orangepi5", 2064.0, 45.307, None),
        ("raspberrypi5", 2400.0, 52.35, pytest.approx(5.511)),
    ],
)
def test_a_board_at_rest(tmp_path: Path, board: str, mhz: float, celsius: float, watts: float | None) -> None:
    """Clock, temperature and power are those of its tree, and nothing is held back."""
    state = read_state(plant(board, tmp_path))
    assert (state.cpu_mhz, state.temperature_celsius, state.power_watts) == (mhz, celsius, watts)
    assert (state.is_throttled, state.battery_ratio) == (False, None)


def test_an_empty_machine_is_not_measured(tmp_path: Path) -> None:
    """Nothing there is None everywhere, never a 0."""
    state = read_state(tmp_path)
    assert {getattr(state, field.name) for field in fields(state)} == {None, ()}


def test_the_power_can_be_left_out(tmp_path: Path) -> None:
    """It may cost a process."""
    assert read_state(plant("raspberrypi5", tmp_path), with_power=False).power_watts is None


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00garbage\n", UNREADABLE, Path("/nowhere"), Path(".")])
def test_a_board_all_of_whose_files_fail_is_not_measured(tmp_path: Path, board: str, content: bytes | Path) -> None:
    """Empty, garbage, EIO, missing and looping files all read as None."""
    root = plant(board, tmp_path)
    for path in [each for each in root.rglob("*") if each.is_file()]:
        put(root, str(path.relative_to(root)), content)
    state = read_state(root)
    assert {getattr(state, field.name) for field in fields(state)} == {None, ()}


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All boards, each once."""
    return {board: plant(board, tmp_path_factory.mktemp(board)) for board in BOARDS}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(board=st.sampled_from(BOARDS), changed=st.data())
def test_no_content_of_any_file_raises(trees: dict[str, Path], board: str, changed: st.DataObject) -> None:
    """A state comes out whatever some of the files hold, and each value of it is None or one that can be."""
    root = trees[board]
    files = sorted(each for each in root.rglob("*") if each.is_file() and each.name != "vcgencmd")
    garbage = st.one_of(st.binary(max_size=40), st.sampled_from(_LIES).map(str.encode))
    chosen = changed.draw(st.dictionaries(st.sampled_from(files), garbage, min_size=1, max_size=6))
    before = {path: path.read_bytes() for path in chosen}
    try:
        for path, content in chosen.items():
            path.write_bytes(content)
        _check(read_state(root, with_power=board != "raspberrypi5"))
    finally:
        for path, content in before.items():
            path.write_bytes(content)


def _check(state: DeviceState) -> None:
    assert state.load_average is None or 0 <= state.load_average < 1e6
    assert state.cpu_mhz is None or 0 < state.cpu_mhz <= 20_000
    assert state.temperature_celsius is None or 1 <= state.temperature_celsius <= 150
    assert state.battery_ratio is None or 0 <= state.battery_ratio <= 1
    assert state.power_watts is None or 0 < state.power_watts <= 2000
    assert state.available_bytes is None or state.available_bytes >= 0
    assert state.is_throttled in (None, True, False)
