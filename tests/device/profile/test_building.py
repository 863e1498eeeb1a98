"""A profile out of its layers."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError

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


@pytest.mark.parametrize(
    ("reach", "told"),
    [
        ("address = 'me@x'", "address = 'me@x' with way = 'local', which takes home alone"),
        ("way = 'adb'\nport = 22", "port = 22 with way = 'adb', which takes address, home alone"),
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
