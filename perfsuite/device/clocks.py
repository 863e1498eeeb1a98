"""Whether the processor's clock is held at one rate, as far as the kernel says."""

from __future__ import annotations

from pathlib import Path

from perfsuite.device.fingerprint import governor
from perfsuite.device.stability.small_files import read_number


def clock_conditions(root: Path = Path("/")) -> dict[str, str]:
    """Return the ``governor`` and whether ``clocks`` are ``locked``, ``not locked`` or ``not known``.

    Clocks are locked where every policy's lowest and highest rate are one. A machine without control of its clocks,
    which most virtual ones are, does not say.
    """
    ranges = [_range_khz(policy) for policy in sorted((root / "sys/devices/system/cpu/cpufreq").glob("policy*"))]
    known = [each for each in ranges if each is not None]
    if not known or len(known) < len(ranges):
        state = "not known"
    else:
        state = "locked" if all(lowest == highest for lowest, highest in known) else "not locked"
    return {"governor": governor(root), "clocks": state}


def _range_khz(policy: Path) -> tuple[int, int] | None:
    lowest, highest = (read_number(policy / f"scaling_{end}_freq") for end in ("min", "max"))
    return None if lowest is None or highest is None else (lowest, highest)
