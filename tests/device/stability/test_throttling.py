"""Whether a device is held back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.device.stability import throttling
from perfsuite.device.stability.throttling import (
    Throttling,
    cpuinfo_mhz,
    find_firmware,
    find_policies,
    find_throttling,
    mean_mhz,
    parse_rails_watts,
    parse_throttled,
    together,
)
from tests.sys_trees import UNREADABLE, plant, put

FILE = "sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        *(("throttled=0x0", ()), ("throttled=0x50005\n", ("under-voltage", "throttled")), ("throttled=0xe0000", ())),
        *(("a", ("frequency capped", "soft temperature limit")), ("0", ())),
        *((text, None) for text in ("", "throttled=", "0x", 'error=2 error_msg="Invalid arguments"', "1" * 9)),
    ],
)
def test_what_holds_now_is_told(text: str, reasons: tuple[str, ...] | None) -> None:
    """What was once, since the start, is no matter; old firmware answers with an error."""
    assert parse_throttled(text) == reasons


@pytest.mark.parametrize(
    ("text", "watts"),
    [
        (
            " VDD_CORE_A current(7)=2.0A\n  VDD_CORE_V volt(15)=0.75V\n 3V3_SYS_A current(1)=1A\n EXT5V_V volt(24)=5V",
            1.5,
        ),
        ("A_A current(0)=900.0A\nA_V volt(1)=5.0V\nB_A current(2)=1.0A\nB_V volt(3)=1.0V", None),
        ("A_A current(0)=-1.0A\nA_V volt(1)=5.0V", None),
        ('error=2 error_msg="Invalid arguments"', None),
    ],
    ids=["the input has a voltage alone", "one that lies spoils the sum", "negative", "old firmware"],
)
def test_a_rail_needs_current_and_voltage(text: str, watts: float | None) -> None:
    assert parse_rails_watts(text) == watts


@given(st.text(max_size=200))
def test_no_answer_raises(text: str) -> None:
    assert parse_throttled(text) is None or isinstance(parse_throttled(text), tuple)
    assert parse_rails_watts(text) is None or isinstance(parse_rails_watts(text), float)


def test_the_kernels_file_is_read_before_the_program_is_asked(tmp_path: Path) -> None:
    """The file costs no process; where it is missing the program answers both questions."""
    assert find_firmware(plant("orangepi5", tmp_path / "other")) is None
    root = plant("raspberrypi5", tmp_path)
    put(root, FILE, "4")
    found = find_firmware(root)
    assert found is not None
    assert found.throttled_by() == ("throttled",)
    put(root, FILE, UNREADABLE)
    assert found.throttled_by() is None
    put(root, FILE, None)
    found = find_firmware(root)
    assert found is not None
    assert found.throttled_by() == ()
    assert found.rails_watts() == pytest.approx(5.511)


@pytest.mark.parametrize(
    "script", ["#!/bin/sh\nexit 1", "#!/nowhere", "#!/bin/sh\nexec sleep 60", "#!/bin/sh\nprintf '\\377'"]
)
def test_a_program_that_fails_says_nothing(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "_LIMIT_S", 0.2)
    put(tmp_path, "usr/bin/vcgencmd", script)
    found = find_firmware(tmp_path)
    assert found is not None
    assert found.throttled_by() is found.rails_watts() is None


def mean(root: Path, *processors: int) -> float | None:
    return mean_mhz([(each, each.khz()) for each in find_policies(root, processors)], processors)


def test_the_mean_is_over_the_processors_used(tmp_path: Path) -> None:
    """Four cores of 1958.4 MHz, three of 2400 and one of 2707.2; those that rest do not count."""
    root = plant("rubikpi", tmp_path)
    assert mean(root) == pytest.approx((4 * 1958.4 + 3 * 2400 + 2707.2) / 8, abs=0.05)
    assert mean(root, 4, 5, 7) == pytest.approx((2 * 2400 + 2707.2) / 3, abs=0.05)
    assert mean(root, 7) == 2707.2
    assert mean(root, 99) is None


@pytest.mark.parametrize("rate", ["0", "-1", "99999999", "fast", "", UNREADABLE, None])
def test_a_rate_that_cannot_be_is_left_out(tmp_path: Path, rate: str | Path | None) -> None:
    root = plant("orangepi5", tmp_path)
    put(root, "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", rate)
    assert mean(root) == (2400 + 2256) / 2
    assert mean(root, 0, 1) is None


def test_processors_that_are_not_told_count_once(tmp_path: Path) -> None:
    root = plant("raspberrypi5", tmp_path)
    put(root, "sys/devices/system/cpu/cpufreq/policy0/related_cpus", "zero one")
    assert mean(root) == mean(root, 3) == 2400


@pytest.mark.parametrize(
    ("text", "mhz"),
    [
        ("processor\t: 0\ncpu MHz\t\t: 2596.100\nprocessor : 1\ncpu MHz\t\t: 2600.100", 2598.1),
        ("processor : 0\nBogoMIPS : 108.00", None),
        ("cpu MHz : 0.000", None),
        ("cpu MHz : nan", None),
    ],
)
def test_x86_tells_its_rate_elsewhere(tmp_path: Path, text: str, mhz: float | None) -> None:
    """Virtual machines have no other."""
    put(tmp_path, "proc/cpuinfo", text)
    assert cpuinfo_mhz(tmp_path) == mhz


POLICY = "sys/devices/system/cpu/cpufreq/policy0"
COOLER = "sys/class/thermal/cooling_device1"


def look(root: Path) -> Throttling:
    return together(each.read() for each in find_throttling(root))


def test_a_hot_phone_is_held_back(tmp_path: Path) -> None:
    """Its caps say so, and its cooling devices; a charger that is throttled is none of them."""
    root = plant("pixel8pro", tmp_path)
    caps = list(root.glob("sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq"))
    steps = [each.parent / "cur_state" for each in root.glob("sys/class/thermal/cooling_device*/type")]
    steps = [each for each in steps if "cpufreq" in (each.parent / "type").read_text()]
    assert look(root).is_throttled
    for each in caps:
        put(root, str(each.relative_to(root)), "0")
    assert look(root).is_throttled
    for each in steps:
        put(root, str(each.relative_to(root)), "0")
    assert look(root).is_throttled is False


@pytest.mark.parametrize(
    ("file", "value", "is_throttled"),
    [
        (f"{POLICY}/scaling_max_freq", "1500000", False),
        (f"{POLICY}/scaling_max_freq", "1600000", True),
        (f"{POLICY}/scaling_max_freq", "0", False),
        ("sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled", "5", True),
    ],
    ids=["locked by somebody: lowest and highest are one", "capped", "no rate", "too little voltage"],
)
def test_what_is_held_on_purpose_is_not_throttled(tmp_path: Path, file: str, value: str, is_throttled: bool) -> None:
    root = plant("raspberrypi5", tmp_path)
    put(root, file, value)
    assert look(root).is_throttled is is_throttled


@pytest.mark.parametrize("reading", ["-1", "9999999", "hot", "", UNREADABLE, None])
def test_what_lies_is_left_out(tmp_path: Path, reading: str | Path | None) -> None:
    root = plant("orangepi5", tmp_path)
    put(root, f"{COOLER}/cur_state", reading)
    assert look(root).is_throttled is False
    put(root, f"{POLICY}/scaling_max_freq", reading)
    put(root, f"{COOLER}/cur_state", "3")
    assert look(root).is_throttled


def test_a_pc_counts(tmp_path: Path) -> None:
    """What it counted since its start is no throttling now; a machine that tells nothing is not known."""
    assert (look(tmp_path), find_throttling(tmp_path)) == (Throttling(is_throttled=None, n_events=None), ())
    for cpu, count in enumerate(("3", "4", "-7", "many")):
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count", count)
    found = look(tmp_path)
    assert (found.n_events, found.is_throttled) == (7, None)
