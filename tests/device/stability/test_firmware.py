"""What a Raspberry Pi's firmware says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.device.stability import firmware
from perfsuite.device.stability.firmware import find_firmware, parse_rails_watts, parse_throttled
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
    """A sum without one of them would be of other rails."""
    assert parse_rails_watts(text) == watts


@given(st.text(max_size=200))
def test_no_answer_raises(text: str) -> None:
    """Whatever the firmware prints."""
    assert parse_throttled(text) is None or isinstance(parse_throttled(text), tuple)
    assert parse_rails_watts(text) is None or isinstance(parse_rails_watts(text), float)


def test_the_program_is_asked(tmp_path: Path) -> None:
    """Where the kernel's file is missing it answers both questions; other devices have none."""
    assert find_firmware(plant("orangepi5", tmp_path / "other")) is None
    root = plant("raspberrypi5", tmp_path)
    put(root, FILE, None)
    found = find_firmware(root)
    assert found is not None
    assert found.throttled_by() == ()
    assert found.rails_watts() == pytest.approx(5.511)


def test_the_kernels_file_is_read_first(tmp_path: Path) -> None:
    """It costs no process."""
    root = plant("raspberrypi5", tmp_path)
    put(root, FILE, "4")
    found = find_firmware(root)
    assert found is not None
    assert found.throttled_by() == ("throttled",)
    put(root, FILE, UNREADABLE)
    assert found.throttled_by() is None


@pytest.mark.parametrize(
    "script", ["#!/bin/sh\nexit 1", "#!/nowhere", "#!/bin/sh\nexec sleep 60", "#!/bin/sh\nprintf '\\377'"]
)
def test_a_program_that_fails_says_nothing(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be started, fails, hangs or prints rubbish is as good as none."""
    monkeypatch.setattr(firmware, "_LIMIT_S", 0.2)
    put(tmp_path, "usr/bin/vcgencmd", script)
    found = find_firmware(tmp_path)
    assert found is not None
    assert found.throttled_by() is found.rails_watts() is None
