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
    """One look at whatever tells of throttling."""

    #: What is held back now, in words; None where nothing could be read.
    reasons: tuple[str, ...] | None
    #: How often it has throttled since its start, on x86; what counts is that it grows.
    n_events: int | None

    @property
    def is_throttled(self) -> bool | None:
        """Whether anything is held back now."""
        return None if self.reasons is None else bool(self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What one source tells of throttling."""

    #: None where it could not be read, or does not tell it so.
    reasons: tuple[str, ...] | None = None
    #: Of a counter of events.
    count: int | None = None


def all_hints(hints: Iterable[Hint]) -> Throttling:
    """Take what all sources tell as one look."""
    told = list(hints)
    known = [each.reasons for each in told if each.reasons is not None]
    counts = [each.count for each in told if each.count is not None]
    return Throttling(
        reasons=tuple(reason for reasons in known for reason in reasons) if known else None,
        n_events=sum(counts) if counts else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottlingSources:
    """Where a device tells of throttling, found once and read often."""

    policies: tuple[Path, ...]
    #: (type, folder) of the cooling devices that cost speed.
    coolers: tuple[tuple[str, Path], ...]
    counters: tuple[Path, ...]
    firmware: Firmware | None

    @property
    def sources(self) -> tuple[Source[Hint], ...]:
        """Each of them by itself; three files of each group of processors, two of each cooling device."""
        found = [
            *(Source(n_reads=3, read=partial(_capped, each)) for each in self.policies),
            *(Source(n_reads=2, read=partial(_cooled, *each)) for each in self.coolers),
            *(Source(n_reads=1, read=partial(_counted, each)) for each in self.counters),
        ]
        if self.firmware is not None:
            found.append(Source(n_reads=1, read=partial(_asked, self.firmware)))
        return tuple(found)

    def read(self) -> Throttling:
        """Look once."""
        return all_hints(each.read() for each in self.sources)


def find_throttling(root: Path) -> ThrottlingSources:
    """Find all that tells of throttling."""
    cpus = root / "sys/devices/system/cpu"
    coolers = [(read_line(each / "type"), each) for each in entries(root / "sys/class/thermal", "cooling_device*")]
    return ThrottlingSources(
        policies=entries(cpus / "cpufreq", "policy*"),
        coolers=tuple((name, folder) for name, folder in coolers if name and _COSTS_SPEED.fullmatch(name)),
        counters=entries(cpus, "cpu[0-9]*/thermal_throttle/*_count"),
        firmware=find_firmware(root),
    )


def _capped(policy: Path) -> Hint:
    """Tell a highest rate below what the hardware has; a clock that is held at one rate was set so, and counts not."""
    lowest, highest, most = (
        read_number(policy / name) for name in ("scaling_min_freq", "scaling_max_freq", "cpuinfo_max_freq")
    )
    if highest is None or most is None or not 0 < highest <= most:
        return Hint()
    if highest == most or lowest == highest:
        return Hint(reasons=())
    return Hint(reasons=(f"{policy.name} is held to {highest // 1000} of {most // 1000} MHz",))


def _cooled(name: str, folder: Path) -> Hint:
    state, most = read_number(folder / "cur_state"), read_number(folder / "max_state")
    if state is None or state < 0 or (most is not None and state > most):
        return Hint()
    return Hint(reasons=(f"{name} is at step {state} of {'?' if most is None else most}",) if state else ())


def _counted(path: Path) -> Hint:
    count = read_number(path)
    return Hint(count=count if count is not None and count >= 0 else None)


def _asked(firmware: Firmware) -> Hint:
    return Hint(reasons=firmware.throttled_by())
