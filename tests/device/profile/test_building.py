"""A profile out of its layers."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from perfsuite.device.machine import NO_CONDITIONS
from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, PEAK_KINDS, Profile, find_profile, profile_names
from perfsuite.device.profile.search import shipped_names
from perfsuite.device.reach import WAYS, Reach
from perfsuite.errors import DeviceError
from perfsuite.workload.catalog import find as find_architecture
from perfsuite.workload.quantization import check_quantization

#: The devices that there have to be.
SHIPPED = {
    *("host", "counted", "rubikpi", "orangepi5", "raspberrypi5", "pixel8pro", "jetson-orin-nano"),
    *("generic-ssh", "generic-adb", "generic-serial"),
}

#: No weight of a default model has more.
BYTES_A_WEIGHT = 1.0


def test_the_devices_ship() -> None:
    assert set(shipped_names()) >= SHIPPED
    assert profile_names(folders=())[0] == "host"


@pytest.mark.parametrize("name", shipped_names())
def test_every_profile_that_ships_is_whole(name: str) -> None:
    profile = find_profile(name, folders=())
    assert profile.name == profile.kind == name
    assert profile.description
    assert profile.reach.way in WAYS
    assert all(ratio > 1.0 for ratio in profile.forecast_tolerance_ratio.values())
    assert all(ratio > 1.0 for ratio in profile.calibrated_tolerance_ratio.values())
    ratios = (profile.session_spread_ratio, profile.max_waiting_ratio, profile.max_others_ratio)
    assert all(0.0 < ratio < 1.0 for ratio in (*ratios, profile.ceiling_spread_ratio))
    assert all(0.0 < ratio < 1.0 for ratio in profile.margin_ratio.values())


def test_the_host_is_this_machine_as_it_is() -> None:
    host = find_profile("host", folders=())
    assert host.is_local
    assert (host.reach, host.conditions) == (Reach(way="local"), NO_CONDITIONS)
    weights = find_profile("host", folders=()).sentinel_weight_ratio
    assert set(weights) == {"memory", "compute"}
    assert all(0.0 <= weight <= 1.0 for weight in weights.values())
    assert DEFAULT_MARGIN_RATIO == 0.05


@pytest.mark.parametrize("name", sorted(SHIPPED - {"host", "counted", "generic-ssh", "generic-adb", "generic-serial"}))
def test_a_board_is_to_be_cool_and_at_full_clocks(name: str) -> None:
    conditions = find_profile(name, folders=()).conditions
    assert conditions.governor == "performance"
    assert conditions.start_below_celsius is not None
    assert 40.0 <= conditions.start_below_celsius <= 70.0
    assert len(set(conditions.processors)) == len(conditions.processors)


@pytest.mark.parametrize("name", sorted(SHIPPED - {"counted"}))
def test_a_default_model_is_in_the_catalogue_and_fits(name: str) -> None:
    """Even with a byte a weight it takes no more than three quarters of the least memory of the board."""
    profile = find_profile(name, folders=())
    if profile.default_model is None:
        assert name in ("host", "generic-ssh", "generic-adb", "generic-serial")
        return
    architecture, _, quantization = profile.default_model.rpartition("-")
    check_quantization(quantization)
    assert profile.memory_bytes is not None
    assert find_architecture(architecture).n_parameters * BYTES_A_WEIGHT < 0.75 * profile.memory_bytes


@pytest.mark.parametrize("name", shipped_names())
def test_every_peak_that_ships_has_a_source(name: str) -> None:
    profile = find_profile(name, folders=())
    for peak in (*profile.theoretical_peaks, *profile.unofficial_peaks):
        assert peak.kind in PEAK_KINDS
        assert peak.per_s > 0
        assert len(peak.source) > 10
    assert all(peak.official for peak in profile.theoretical_peaks)
    assert not any(peak.official for peak in profile.unofficial_peaks)


@pytest.mark.parametrize(
    "name",
    [
        *("nokia3310", "", "../host", "host.toml", "/etc/passwd", ".", "..", "a/b", "../profiles/host", "devices/x"),
        *("x" * 65, "a\nb", "\x1b[31m", "host\n", "\0"),
    ],
)
def test_what_is_no_name_of_a_device_is_unknown(name: str, tmp_path: Path) -> None:
    """Also where a file of that path would be there."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.toml").write_text('description = "a board"')
    with pytest.raises(DeviceError) as caught:
        find_profile(name, folders=(tmp_path,))
    shown = name if name.isprintable() else repr(name)
    assert str(caught.value).startswith(f"--device={shown}: no such device; known are host, ")
    assert str(caught.value).isprintable()


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
