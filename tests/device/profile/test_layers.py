"""Profiles that take over others."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def found(folder: Path, name: str) -> Profile:
    return find_profile(name, folders=(folder,))


def test_what_is_not_said_is_taken_over(tmp_path: Path) -> None:
    put(tmp_path, "desk-pi", 'extends = "rubikpi"\n[reach]\naddress = "me@desk"\n')
    desk, rubikpi = found(tmp_path, "desk-pi"), find_profile("rubikpi", folders=())
    assert desk.reach == Reach(way="ssh", address="me@desk")
    for name in Profile.__slots__:
        if name not in ("name", "reach"):
            assert getattr(desk, name) == getattr(rubikpi, name), name


def test_single_values_of_a_table_are_changed(tmp_path: Path) -> None:
    text = 'extends = "rubikpi"\n[conditions]\nprocessors = [7]\n[judging.margin_ratio]\nphase = 0.5\n'
    put(tmp_path, "desk-pi", text)
    desk, rubikpi = found(tmp_path, "desk-pi"), find_profile("rubikpi", folders=())
    assert desk.conditions.processors == (7,)
    assert desk.conditions.governor == rubikpi.conditions.governor
    assert desk.margin_ratio == {**rubikpi.margin_ratio, "phase": 0.5}


def test_an_empty_text_takes_a_value_away(tmp_path: Path) -> None:
    """So does a temperature without an end: nothing is asked for then."""
    text = 'extends = "rubikpi"\nopencl_platform = ""\ndefault_model = ""\n[conditions]\ngovernor = ""\n'
    put(tmp_path, "desk-pi", f"{text}start_below_celsius = inf\nthermal_zones = []\n")
    desk = found(tmp_path, "desk-pi")
    assert (desk.opencl_platform, desk.default_model, desk.conditions.governor) == (None, None, None)
    assert (desk.conditions.start_below_celsius, desk.conditions.thermal_zones) == (None, ())


def test_another_way_begins_anew(tmp_path: Path) -> None:
    """Port and key of ssh mean nothing to adb, and are not taken over; saying the same way again loses nothing."""
    put(tmp_path, "base", 'extends = "rubikpi"\n[reach]\naddress = "me@x"\nport = 2222\nidentity_file = "k"\n')
    put(tmp_path, "phone", 'extends = "base"\n[reach]\nway = "adb"\naddress = "0123"\n')
    assert found(tmp_path, "phone").reach == Reach(way="adb", address="0123", home="/data/local/tmp/perfsuite")
    put(tmp_path, "base", 'extends = "rubikpi"\n[reach]\nport = 2222\n')
    put(tmp_path, "board", 'extends = "base"\n[reach]\nway = "ssh"\naddress = "x"\n')
    assert found(tmp_path, "board").reach == Reach(way="ssh", address="x", port=2222)


def test_judging_may_be_left_out(tmp_path: Path) -> None:
    put(tmp_path, "board", 'description = "a board"\n')
    board, host = found(tmp_path, "board"), find_profile("host", folders=())
    tolerances = ("forecast_tolerance_ratio", "calibrated_tolerance_ratio", "quick_tolerance_ratio")
    for name in ("margin_ratio", "sentinel_weight_ratio", *tolerances):
        assert getattr(board, name) == getattr(host, name)
    assert board.session_spread_ratio == host.session_spread_ratio


def test_a_host_of_ones_own_changes_no_other_device(tmp_path: Path) -> None:
    put(tmp_path, "host", 'extends = "host"\n[judging]\nsession_spread_ratio = 0.01\n')
    put(tmp_path, "board", 'description = "a board"\n')
    assert found(tmp_path, "host").session_spread_ratio == 0.01
    assert found(tmp_path, "board").session_spread_ratio == find_profile("host", folders=()).session_spread_ratio


def test_a_profile_may_extend_the_one_that_it_hides(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for each, port in ((one, 1), (two, 2)):
        each.mkdir()
        put(each, "rubikpi", f'extends = "rubikpi"\n[reach]\nport = {port}\nhome = "/{each.name}"\n')
    (one / "rubikpi.toml").write_text('extends = "rubikpi"\n[reach]\nport = 1\n')
    profile = find_profile("rubikpi", folders=(one, two))
    assert profile.reach == Reach(way="ssh", address="rubikpi", port=1, home="/two")
    assert profile.conditions == find_profile("rubikpi", folders=()).conditions


def test_a_circle_is_refused(tmp_path: Path) -> None:
    one, two, three = (
        put(tmp_path, name, f'extends = "{base}"\n') for name, base in (("a", "b"), ("b", "c"), ("c", "b"))
    )
    with pytest.raises(DeviceError) as caught:
        found(tmp_path, "a")
    ring = f"{one} -> {two} -> {three} -> {two}"
    assert str(caught.value) == f"{one}: extends in a circle: {ring}; break it at one of them"
    for number in range(30):
        put(tmp_path, f"p{number}", f'extends = "p{number + 1}"\n')
    with pytest.raises(DeviceError, match="extends in a circle"):
        found(tmp_path, "p0")
