"""What a profile's file may hold, and what is stated of everything else."""

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
    ("text", "table", "unknown", "meant"),
    [
        ('reech = "x"', "", "'reech'", "reach"),
        ("[reach]\nprot = 22", "reach: ", "'prot'", "port"),
        ("[judging.sentinel_weight_ratio]\nmemry = 1", "judging.sentinel_weight_ratio: ", "'memry'", "memory"),
        ('"new\\nline" = 1', "", "'new\\nline'", ""),
    ],
)
def test_an_unknown_key_is_told(text: str, table: str, unknown: str, meant: str, tmp_path: Path) -> None:
    told = refusal(tmp_path, text)
    assert told.startswith(f"{table}field {unknown} is unknown; accepted are ")
    assert (f"(did you mean {meant}?)" in told) == bool(meant)
    assert told.endswith("; docs/reference/profiles.md says what a profile takes")


@pytest.mark.parametrize(
    "address",
    ["-oProxyCommand=x", "a b", "a\\nb", "$(reboot)", "`reboot`", "a;b", "a|b", "a&b", "a'b", "ssh://host", "x" * 1001],
)
def test_an_address_is_no_option_and_no_command(address: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, f'[reach]\nway = "ssh"\naddress = "{address}"').startswith("reach.address is ")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            'processors = "4-7"',
            "processors is '4-7', expected a list of different processor numbers, such as [4, 5, 6, 7]",
        ),
        ('governor = "../x"', "governor is '../x', expected a governor such as 'performance', or '' for none"),
        ("start_below_celsius = 55000", "start_below_celsius is 55000.0, expected degrees Celsius"),
        ("least_battery_ratio = 30", "least_battery_ratio is 30, expected a ratio from 0 to 1, such as 0.3"),
    ],
)
def test_a_wrong_condition_is_told(line: str, told: str, tmp_path: Path) -> None:
    """Wrong units are as wrong as wrong types: thousandths of a degree, and per cent."""
    assert refusal(tmp_path, f"[conditions]\n{line}").startswith(f"conditions.{told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("]\nsession_spread_ratio = 3", ".session_spread_ratio is 3, expected a ratio between 0 and 1"),
        (
            ".forecast_tolerance_ratio]\nphase = 1",
            ".forecast_tolerance_ratio['phase'] is 1, expected a number of times ",
        ),
        (".sentinel_weight_ratio]\nmemory = 1.5", ".sentinel_weight_ratio.memory is 1.5, expected a ratio from 0 to 1"),
    ],
)
def test_a_wrong_measure_is_told(text: str, told: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, f"[judging{text}").startswith(f"judging{told}")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("17.1e9", "17.1", ".per_s is 17.1, expected bytes or operations a second, such as 17.1e9 for 17.1 GB/s"),
        ('source = "a data sheet"', "", ": source is missing"),
    ],
)
def test_a_peak_is_whole_or_refused(old: str, new: str, told: str, tmp_path: Path) -> None:
    """A figure without a source, or in other units, is none."""
    assert refusal(tmp_path, PEAK.replace(old, new)).startswith(f"theoretical[0]{told}")
