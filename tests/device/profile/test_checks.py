"""What a profile's file may hold, and what is said of everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import DeviceError

PEAK = '[[theoretical]]\nprocessor = "cpu"\nkind = "bandwidth"\nper_s = 17.1e9\nsource = "a data sheet"\n'


def refusal(folder: Path, text: str) -> str:
    """The line that a profile is refused with, without the file that it has to begin with."""
    path = folder / "board.toml"
    path.write_text(f'description = "a board"\n{text}')
    with pytest.raises(DeviceError) as caught:
        find_profile("board", folders=(folder,))
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    assert told.isprintable()
    return told.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('reech = "x"', "a profile has no key 'reech' (did you mean reach?); it takes description, extends, "),
        ("[reach]\nprot = 22", "[reach] has no key 'prot' (did you mean port?); it takes way, address, port, "),
        ('[conditions]\nzzz = "x"', "[conditions] has no key 'zzz'; it takes processors, governor, "),
        ("[judging]\nforecast_least_ms = 1", "[judging] has no key 'forecast_least_ms' (did you mean "),
        ("[judging.sentinel_weight_ratio]\nmemry = 1", "[judging.sentinel_weight_ratio] has no key 'memry' (did you "),
        (f"{PEAK}unit = 'GB/s'", "[[theoretical]] number 1 has no key 'unit'"),
        ('"new\\nline" = 1', "a profile has no key 'new\\nline'; it takes "),
    ],
)
def test_an_unknown_key_is_told(text: str, told: str, tmp_path: Path) -> None:
    """With the table that it stands in, the nearest key, and those that there are."""
    assert refusal(tmp_path, text).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind = 7", "kind = 7, expected a name (letters, digits, "),
        ("extends = '../host'", "extends = '../host', expected a name (letters, digits, "),
        ("default_model = true", "default_model = true, expected a line of text, or '' for none"),
        ('opencl_platform = "two\\nlines"', "opencl_platform = 'two\\nlines', expected a line of text"),
        ("memory_bytes = 8", "memory_bytes = 8, expected a whole number of bytes, such as 8_589_934_592 for 8 GiB"),
        ("memory_bytes = 8e9", "memory_bytes = 8000000000.0, expected a whole number of bytes"),
        ("reach = 'ssh'", "reach = 'ssh', expected a table that begins with [reach]"),
        ("[[reach]]", "reach = [{}], expected a table that begins with [reach]"),
        (
            "[judging]\nmargin_ratio = 0.1",
            "margin_ratio = 0.1, expected a table that begins with [judging.margin_ratio]",
        ),
        ("theoretical = 'x'", "theoretical = 'x', expected tables that begin with [[theoretical]]"),
        ("[theoretical]", "theoretical = {}, expected tables that begin with [[theoretical]]"),
    ],
)
def test_a_wrong_type_is_told(text: str, told: str, tmp_path: Path) -> None:
    """With the value as it is, and what is accepted."""
    assert refusal(tmp_path, text).startswith(told)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('way = "telnet"', "way = 'telnet', expected one of local, ssh, adb"),
        ("way = 1", "way = 1, expected one of local, ssh, adb"),
        ("port = 0", "port = 0, expected a whole number from 1 to 65535"),
        ("port = 65536", "port = 65536, expected a whole number from 1 to 65535"),
        ('port = "22"', "port = '22', expected a whole number from 1 to 65535"),
        ("port = true", "port = true, expected a whole number from 1 to 65535"),
        ("port = 22.0", "port = 22.0, expected a whole number from 1 to 65535"),
        ("identity_file = 3", "identity_file = 3, expected the path of a file, or '' for none"),
        ('known_hosts_file = "a\\u0000b"', "known_hosts_file = 'a\\x00b', expected the path of a file, or '' for none"),
        ('home = "perfsuite"', "home = 'perfsuite', expected a folder on the device that begins with / or ~/"),
        ('home = "~"', "home = '~', expected a folder on the device that begins with / or ~/"),
    ],
)
def test_a_wrong_way_is_told(line: str, told: str, tmp_path: Path) -> None:
    """Each key of [reach] says what it takes."""
    assert refusal(tmp_path, f"[reach]\n{line}").startswith(f"[reach] {told}")


@pytest.mark.parametrize(
    "address",
    ["-oProxyCommand=x", "a b", "a\\nb", "$(reboot)", "`reboot`", "a;b", "a|b", "a&b", "a'b", "ssh://host", "x" * 1001],
)
def test_an_address_is_no_option_and_no_command(address: str, tmp_path: Path) -> None:
    """What OpenSSH or a shell could take for more than a host is refused."""
    assert refusal(tmp_path, f'[reach]\nway = "ssh"\naddress = "{address}"').startswith("[reach] address = ")


@pytest.mark.parametrize("address", ["board", "me@board", "192.168.1.2", "me@[fe80::1%eth0]", "fe80::1", "lab_1.local"])
def test_an_address_is_a_host(address: str, tmp_path: Path) -> None:
    """With a user or without one, by name or by number; OpenSSH's client takes IPv6 without brackets."""
    (tmp_path / "board.toml").write_text(f'description = "x"\n[reach]\nway = "ssh"\naddress = "{address}"')
    assert find_profile("board", folders=(tmp_path,)).reach.address == address.replace("[", "").replace("]", "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            'processors = "4-7"',
            "processors = '4-7', expected a list of different processor numbers, such as [4, 5, 6, 7]",
        ),
        ("processors = [4, 4]", "processors = [4, 4], expected a list of different processor numbers"),
        ("processors = [-1]", "processors = [-1], expected a list of different processor numbers"),
        ("processors = [1.5]", "processors = [1.5], expected a list of different processor numbers"),
        ("processors = [true]", "processors = [True], expected a list of different processor numbers"),
        ("processors = [4, [5]]", "processors = [4, [5]], expected a list of different processor numbers"),
        ('governor = "a b"', "governor = 'a b', expected a governor such as 'performance', or '' for none"),
        ('gpu_governor = "../x"', "gpu_governor = '../x', expected a governor such as 'performance', or '' for none"),
        ("start_below_celsius = 55000", "start_below_celsius = 55000, expected degrees Celsius, such as 55.0"),
        ("start_below_celsius = nan", "start_below_celsius = nan, expected degrees Celsius, such as 55.0"),
        ("start_below_celsius = -inf", "start_below_celsius = -inf, expected degrees Celsius, such as 55.0"),
        ('start_below_celsius = "55 C"', "start_below_celsius = '55 C', expected degrees Celsius, such as 55.0"),
        ("cooling_limit_s = -1", "cooling_limit_s = -1, expected seconds, from 0 to 86400"),
        ("cooling_limit_s = inf", "cooling_limit_s = inf, expected seconds, from 0 to 86400"),
        ("least_battery_ratio = 30", "least_battery_ratio = 30, expected a ratio from 0 to 1, such as 0.3"),
        (f"least_battery_ratio = 1{'0' * 400}", "least_battery_ratio = 1000"),
        ('thermal_zones = "cpu-thermal"', "thermal_zones = 'cpu-thermal', expected a list of types of thermal zones"),
        ('thermal_zones = [""]', "thermal_zones = [''], expected a list of types of thermal zones"),
    ],
)
def test_a_wrong_condition_is_told(line: str, told: str, tmp_path: Path) -> None:
    """Wrong units are as wrong as wrong types: thousandths of a degree, and per cent."""
    assert refusal(tmp_path, f"[conditions]\n{line}").startswith(f"[conditions] {told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[judging]\nsession_spread_ratio = 3", "[judging] session_spread_ratio = 3, expected a ratio between 0 and 1"),
        ("[judging]\nmax_others_ratio = 0", "[judging] max_others_ratio = 0, expected a ratio between 0 and 1"),
        (
            "[judging]\nforecast_least_ns = 1e5",
            "[judging] forecast_least_ns = 100000.0, expected a whole number of nano",
        ),
        ("[judging.margin_ratio]\nphase = 2", "[judging.margin_ratio] phase = 2, expected a ratio between 0 and 1"),
        (
            "[judging.margin_ratio]\n'a b' = 0.1",
            "[judging.margin_ratio] 'a b' is no kind of case; expected a name such",
        ),
        (
            "[judging.forecast_tolerance_ratio]\nphase = 1",
            "[judging.forecast_tolerance_ratio] phase = 1, expected a number of times above 1, such as 8.0",
        ),
        (
            "[judging.calibrated_tolerance_ratio]\nphase = inf",
            "[judging.calibrated_tolerance_ratio] phase = inf, expected a number of times above 1, such as 8.0",
        ),
        (
            "[judging.sentinel_weight_ratio]\nmemory = 1.5",
            "[judging.sentinel_weight_ratio] memory = 1.5, expected a ratio from 0 to 1, such as 0.25",
        ),
    ],
)
def test_a_wrong_measure_is_told(text: str, told: str, tmp_path: Path) -> None:
    """How strictly to judge is within what can be judged by."""
    assert refusal(tmp_path, text).startswith(told)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"bandwidth"', '"fp64"', "number 1: kind = 'fp64', expected one of bandwidth, fp32, f16, int8"),
        (
            "17.1e9",
            "17.1",
            "number 1: per_s = 17.1, expected bytes or operations a second, such as 17.1e9 for 17.1 GB/s",
        ),
        ("17.1e9", "0", "number 1: per_s = 0, expected bytes or operations a second"),
        ("17.1e9", "nan", "number 1: per_s = nan, expected bytes or operations a second"),
        ("17.1e9", "inf", "number 1: per_s = inf, expected bytes or operations a second"),
        ('"a data sheet"', '""', "number 1: source = '', expected a line of text"),
        ('"a data sheet"', '" "', "number 1: source = ' ', expected a line of text"),
        ('source = "a data sheet"', "", "number 1: source is missing; expected a line of text"),
        ('kind = "bandwidth"', "", "number 1: kind is missing; expected one of bandwidth, fp32, f16, int8"),
        ('"a data sheet"', '"a data sheet"\nofficial = "no"', "number 1: official = 'no', expected true or false"),
    ],
)
def test_a_peak_is_whole_or_refused(old: str, new: str, told: str, tmp_path: Path) -> None:
    """A figure without a source, or in other units, is none."""
    assert refusal(tmp_path, PEAK.replace(old, new)).startswith(f"[[theoretical]] {told}")


def test_a_peak_is_there_once(tmp_path: Path) -> None:
    """Two figures of the same would leave it open which one counts."""
    told = "[[theoretical]] number 2: bandwidth of 'cpu' is there twice; leave one"
    assert refusal(tmp_path, f"{PEAK}{PEAK}") == told


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    """A line stays a line."""
    assert len(refusal(tmp_path, f'kind = "{"x" * 5000}"')) < 300
