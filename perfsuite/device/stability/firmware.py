"""What the firmware of a Raspberry Pi says of its power and its throttling."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.small_files import entries, is_there, read_line

_PLACES = ("usr/bin/vcgencmd", "opt/vc/bin/vcgencmd")
#: Longest that the firmware may take to answer.
_LIMIT_S = 2.0
#: The bits that hold now; those from 16 on say what was since the start.
_NOW = {0: "under-voltage", 1: "frequency capped", 2: "throttled", 3: "soft temperature limit"}
#: ``VDD_CORE_A current(7)=0.56259000A``, ``VDD_CORE_V volt(15)=0.76798460V``.
_RAIL = re.compile(r"\s*(\w+)_([AV])\s+\w+\(\d+\)=(\d+(?:\.\d+)?)[AV]\s*", re.ASCII)
#: More than any rail of such a board carries, A or V.
_MOST_OF_A_RAIL = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Firmware:
    """The ways to ask it: its program, and the file that the vendor's kernel has for one question."""

    program: Path | None
    throttled_file: Path | None

    def throttled_by(self) -> tuple[str, ...] | None:
        """Return what holds the processor back now; None where it does not say."""
        if self.throttled_file is not None:
            return parse_throttled(read_line(self.throttled_file) or "")
        return parse_throttled(self._asked("get_throttled"))

    def rails_watts(self) -> float | None:
        """Return the power of all rails of the power chip; None where there is no such chip (before the Pi 5)."""
        return parse_rails_watts(self._asked("pmic_read_adc"))

    def _asked(self, question: str) -> str:
        if self.program is None:
            return ""
        try:
            answer = subprocess.run(
                [self.program, question], stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return answer.stdout.decode("utf-8", "replace") if answer.returncode == 0 else ""


def find_firmware(root: Path) -> Firmware | None:
    """Return how the firmware is asked; None on other devices."""
    program = next((root / place for place in _PLACES if is_there(root / place)), None)
    files = entries(root / "sys/devices/platform", "soc*/*firmware/get_throttled")
    if program is None and not files:
        return None
    return Firmware(program=program, throttled_file=files[0] if files else None)


def parse_throttled(text: str) -> tuple[str, ...] | None:
    """Read ``throttled=0x50005``, or the bare hexadecimal number of the kernel's file.

    *Source*: Raspberry Pi documentation, 'vcgencmd', get_throttled.
    """
    found = re.fullmatch(r"(?:throttled=)?(?:0x)?([0-9a-fA-F]{1,8})", text.strip())
    if found is None:
        return None
    bits = int(found[1], 16)
    return tuple(name for bit, name in _NOW.items() if bits >> bit & 1)


def parse_rails_watts(text: str) -> float | None:
    """Sum current times voltage over the rails of which both are told, W.

    *Source*: Raspberry Pi documentation, 'vcgencmd', pmic_read_adc.
    """
    matches = [match for line in text.splitlines() if (match := _RAIL.fullmatch(line))]
    values = {(match[1], match[2]): float(match[3]) for match in matches}
    rails = [(amperes, values.get((name, "V"))) for (name, kind), amperes in values.items() if kind == "A"]
    known = [(amperes, volts) for amperes, volts in rails if volts is not None]
    if not known or any(max(rail) > _MOST_OF_A_RAIL for rail in known):
        return None
    return sum(amperes * volts for amperes, volts in known)
