"""A profile out of its layers."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from perfsuite.device.conditions import Conditions
from perfsuite.device.profile import Profile, TheoreticalPeak, find_profile
from perfsuite.device.profile.account import profile_account
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError


def test_every_value_is_told_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "desk.toml").write_text("extends = 'rubikpi'\n[reach]\nport = 2222\n")
    account = profile_account("desk", folders=(tmp_path,))
    by_key = {each.key: each for each in account.values}
    files = {key: None if each.file is None else each.file.name for key, each in by_key.items()}
    assert (by_key["reach.port"].value, files["reach.port"]) == (2222, "desk")
    assert (by_key["conditions.governor"].value, files["conditions.governor"]) == ("performance", "rubikpi")
    assert files["judging.session_spread_ratio"] == "host"
    assert (by_key["reach.address"].value, files["reach.address"]) == ("desk", None)
    assert account.profile == find_profile("desk", folders=(tmp_path,))
    assert [file.name for file in account.files] == ["desk", "rubikpi"]
    assert account.peaks_file is not None
    assert account.peaks_file.name == "rubikpi"
    assert profile_account("host", folders=()).peaks_file is None


WHOLE = """
description = "a board"
kind = "pi"
memory_bytes = 8_589_934_592
default_model = "smollm2-135m-q8_0"
opencl_platform = "Intel"

[reach]
way = "ssh"
address = "me@board"
port = 2222
identity_file = "/keys/board"
known_hosts_file = "/keys/hosts"
home = "/opt/perfsuite"

[conditions]
processors = [4, 5]
governor = "performance"
gpu_governor = "powersave"
start_below_celsius = 55
cooling_limit_s = 60
thermal_zones = ["cpu-thermal"]
least_battery_ratio = 1

[judging]
forecast_least_ns = 7
session_spread_ratio = 0.1
max_waiting_ratio = 0.2
max_others_ratio = 0.3
ceiling_spread_ratio = 0.4

[[theoretical]]
processor = "cpu"
kind = "bandwidth"
per_s = 17_100_000_000
source = "a data sheet"

[[theoretical]]
processor = "Adreno"
kind = "fp32"
per_s = 831e9
source = "somebody's guess"
official = false
"""


def found(folder: Path, text: str) -> Profile:
    (folder / "board.toml").write_text(text)
    return find_profile("board", folders=(folder,))


def test_every_value_arrives(tmp_path: Path) -> None:
    board = found(tmp_path, WHOLE)
    assert (board.name, board.kind, board.description) == ("board", "pi", "a board")
    assert (board.memory_bytes, board.default_model, board.opencl_platform) == (8 << 30, "smollm2-135m-q8_0", "Intel")
    keys = {"identity_file": "/keys/board", "known_hosts_file": "/keys/hosts"}
    assert board.reach == Reach(way="ssh", address="me@board", port=2222, home="/opt/perfsuite", **keys)
    assert asdict(board.conditions) == {
        "processors": (4, 5),
        "governor": "performance",
        "gpu_governor": "powersave",
        "start_below_celsius": 55.0,
        "cooling_limit_s": 60.0,
        "least_battery_ratio": 1.0,
        "thermal_zones": ("cpu-thermal",),
    }
    assert type(board.conditions.start_below_celsius) is float
    assert (board.forecast_least_ns, board.session_spread_ratio) == (7, 0.1)
    assert (board.max_waiting_ratio, board.max_others_ratio, board.ceiling_spread_ratio) == (0.2, 0.3, 0.4)


def test_official_peaks_are_those_that_are_compared(tmp_path: Path) -> None:
    board = found(tmp_path, WHOLE)
    bandwidth = TheoreticalPeak(processor="cpu", kind="bandwidth", per_s=17.1e9, source="a data sheet")
    assert board.theoretical_peaks == (bandwidth,)
    (guess,) = board.unofficial_peaks
    assert (guess.kind, guess.per_s, guess.source, guess.official) == ("fp32", 831e9, "somebody's guess", False)


def test_a_profile_of_one_line_is_this_machine(tmp_path: Path) -> None:
    """Nothing said about the way means none is needed; the kind is the name."""
    board = found(tmp_path, 'description = "a board"')
    assert (board.reach, board.conditions, board.kind) == (Reach(), Conditions(), "board")
    assert (board.default_model, board.memory_bytes, board.theoretical_peaks) == (None, None, ())
    assert board.is_local


def test_a_device_is_described(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"board\.toml: description is missing; expected a line of text$"):
        found(tmp_path, "[reach]\nway = 'ssh'")


@pytest.mark.parametrize(
    ("reach", "told"),
    [
        ("address = 'me@x'", "address = 'me@x' with way = 'local', which takes home alone"),
        ("way = 'local'\nport = 22", "port = 22 with way = 'local', which takes home alone"),
        ("way = 'adb'\nport = 22", "port = 22 with way = 'adb', which takes address, home alone"),
        ("way = 'adb'\nidentity_file = 'k'", "identity_file = 'k' with way = 'adb', which takes address, home alone"),
    ],
)
def test_a_key_of_another_way_is_refused(reach: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=rf"board\.toml: \[reach\] {re.escape(told)}$"):
        found(tmp_path, f"description = 'x'\n[reach]\n{reach}")


def test_an_ipv6_address_of_ssh_has_no_brackets(tmp_path: Path) -> None:
    """OpenSSH takes an address with brackets for a name; a serial number of adb keeps them."""
    by_ssh = found(tmp_path, 'description = "x"\n[reach]\nway = "ssh"\naddress = "me@[fe80::1]"\n')
    assert by_ssh.reach.address == "me@fe80::1"
    with pytest.raises(DeviceError, match=r"board\.toml: \[reach\] address = '\[fe80::1\]:22': expected .* port = N"):
        found(tmp_path, 'description = "x"\n[reach]\nway = "ssh"\naddress = "[fe80::1]:22"\n')
    by_adb = found(tmp_path, 'description = "x"\n[reach]\nway = "adb"\naddress = "[fe80::1]:5555"\n')
    assert by_adb.reach.address == "[fe80::1]:5555"


def test_paths_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key beside the profile is found from any folder; ``~`` is the home here."""
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "devices").mkdir()
    text = "description = 'x'\n[reach]\nway = 'ssh'\nidentity_file = '~/.ssh/lab'\nknown_hosts_file = 'keys/hosts'\n"
    (tmp_path / "devices" / "board.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    reach = find_profile("board").reach
    assert reach.identity_file == "/home/me/.ssh/lab"
    assert reach.known_hosts_file == str(tmp_path / "devices" / "keys" / "hosts")


def test_a_path_that_is_taken_over_is_relative_to_where_it_was_said(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for each in (one, two):
        each.mkdir()
    (two / "base.toml").write_text("description = 'x'\n[reach]\nway = 'ssh'\nidentity_file = 'key'\n")
    (one / "board.toml").write_text("extends = 'base'\n[reach]\nport = 1\n")
    assert find_profile("board", folders=(one, two)).reach.identity_file == str(two / "key")


def test_a_home_that_nobody_has_is_told(tmp_path: Path) -> None:
    text = "description = 'x'\n[reach]\nway = 'ssh'\nidentity_file = '~no-such-user/key'\n"
    with pytest.raises(DeviceError, match=r"identity_file = '~no-such-user/key': that home is unknown$"):
        found(tmp_path, text)
