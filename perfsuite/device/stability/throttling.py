"""Finds out whether a device holds its processors or its GPU back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfsuite.device.stability.firmware import Firmware, find_firmware
from perfsuite.device.stability.rotation import Source
from perfsuite.device.stability.small_files import entries, read_line, read_number

#: Cooling devices that cost speed. Fans, chargers, displays and radios are cooling devices, too, and do not.
_COSTS_SPEED = re.compile(r"(?i)(?!.*fan).*(?:cpu|processor|gpu|devfreq|mali|kgsl|powerclamp|thermal-idle).*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """One look at what tells of throttling: at one source, or at all of them."""

    #: Whether anything is held back now; None where nothing could be read.
    is_throttled: bool | None = None
    #: How often it has throttled since its start, on x86; what counts is that it grows.
    n_events: int | None = None


def together(looks: Iterable[Throttling]) -> Throttling:
    """Take what all sources tell as one look."""
    told = list(looks)
    known = [each.is_throttled for each in told if each.is_throttled is not None]
    counts = [each.n_events for each in told if each.n_events is not None]
    return Throttling(is_throttled=any(known) if known else None, n_events=sum(counts) if counts else None)


def find_throttling(root: Path) -> tuple[Source[Throttling], ...]:
    """Return all that tells of it: three files of each group of processors, two of each cooling device, counters."""
    cpus = root / "sys/devices/system/cpu"
    coolers = [each for each in entries(root / "sys/class/thermal", "cooling_device*") if _costs_speed(each)]
    counters = entries(cpus, "cpu[0-9]*/thermal_throttle/*_count")
    firmware = find_firmware(root)
    return (
        *(Source(n_reads=3, read=partial(_capped, each)) for each in entries(cpus / "cpufreq", "policy*")),
        *(Source(n_reads=2, read=partial(_cooled, each)) for each in coolers),
        *(Source(n_reads=1, read=partial(_counted, each)) for each in counters),
        *([Source(n_reads=1, read=partial(_asked, firmware))] if firmware is not None else []),
    )


def _costs_speed(cooler: Path) -> bool:
    return _COSTS_SPEED.fullmatch(read_line(cooler / "type") or "") is not None


def _capped(policy: Path) -> Throttling:
    """Tell a highest rate below what the hardware has; a clock that is held at one rate was set so, and counts not."""
    lowest, highest, most = (
        read_number(policy / name) for name in ("scaling_min_freq", "scaling_max_freq", "cpuinfo_max_freq")
    )
    if highest is None or most is None or not 0 < highest <= most:
        return Throttling()
    return Throttling(is_throttled=highest < most and lowest != highest)


def _cooled(cooler: Path) -> Throttling:
    state, most = read_number(cooler / "cur_state"), read_number(cooler / "max_state")
    if state is None or state < 0 or (most is not None and state > most):
        return Throttling()
    return Throttling(is_throttled=state > 0)


def _counted(path: Path) -> Throttling:
    count = read_number(path)
    return Throttling(n_events=count if count is not None and count >= 0 else None)


def _asked(firmware: Firmware) -> Throttling:
    reasons = firmware.throttled_by()
    return Throttling(is_throttled=None if reasons is None else bool(reasons))
