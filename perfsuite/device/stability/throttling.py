"""Finds out whether a device holds its processors or its GPU back."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfsuite.device.stability.small_files import Source, entries, is_there, processor_list, read_line, read_number

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

    @property
    def files(self) -> tuple[Path, ...]:
        """What is read to know what holds the processor back, except the program."""
        return () if self.throttled_file is None else (self.throttled_file,)

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
    """Sum current times voltage over the rails of which both are reported, W.

    *Source*: Raspberry Pi documentation, 'vcgencmd', pmic_read_adc.
    """
    matches = [match for line in text.splitlines() if (match := _RAIL.fullmatch(line))]
    values = {(match[1], match[2]): float(match[3]) for match in matches}
    rails = [(amperes, values.get((name, "V"))) for (name, kind), amperes in values.items() if kind == "A"]
    known = [(amperes, volts) for amperes, volts in rails if volts is not None]
    if not known or any(max(rail) > _MOST_OF_A_RAIL for rail in known):
        return None
    return sum(amperes * volts for amperes, volts in known)


#: No processor is faster; a higher rate is no rate.
_MOST_KHZ = 20_000_000
_MHZ_OF_CPUINFO = re.compile(r"^cpu MHz\s*:\s*([0-9]{1,5}(?:\.[0-9]+)?)\s*$", re.MULTILINE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A group of processors that share a clock."""

    folder: Path
    #: The numbers of its processors that are on; () where the kernel does not say.
    processors: tuple[int, ...]

    @property
    def rate_file(self) -> Path:
        """Where the kernel tells the rate."""
        return self.folder / "scaling_cur_freq"

    def khz(self) -> int | None:
        """Return the rate now."""
        rate = read_number(self.rate_file)
        return rate if rate is not None and 0 < rate <= _MOST_KHZ else None


def find_policies(root: Path, processors: Sequence[int] = ()) -> tuple[Policy, ...]:
    """Return the groups with a processor that is on, of those given; () means all processors."""
    cpus = root / "sys/devices/system/cpu"
    on = set(processor_list(read_line(cpus / "online") or ""))
    groups = [
        (each, processor_list(read_line(each / "related_cpus") or "")) for each in entries(cpus, "cpufreq/policy*")
    ]
    found = [
        Policy(folder=folder, processors=tuple(each for each in group if not on or each in on))
        for folder, group in groups
        if not (on and group) or on & set(group)
    ]
    wanted = set(processors)
    return tuple(each for each in found if not wanted or not each.processors or wanted & set(each.processors))


def mean_mhz(rates: Iterable[tuple[Policy, int | None]], processors: Sequence[int] = ()) -> float | None:
    """Return the mean over the processors used, of rates in kHz; None where no group tells its rate.

    mean = sum(n_p * rate_p) / sum(n_p), n_p: processors of group p that are used.
    """
    used = set(processors)
    weighed = [
        (max(1, len(used & set(each.processors)) if used and each.processors else len(each.processors)), khz)
        for each, khz in rates
        if khz is not None
    ]
    if not weighed:
        return None
    return round(sum(weight * khz for weight, khz in weighed) / sum(weight for weight, _ in weighed) / 1000, 1)


def cpuinfo_mhz(root: Path) -> float | None:
    """Return the mean that ``/proc/cpuinfo`` tells, on x86, where virtual machines have no other."""
    told = [float(each) for each in _MHZ_OF_CPUINFO.findall(read_line(root / "proc/cpuinfo") or "")]
    rates = [each for each in told if 0 < each <= _MOST_KHZ / 1000]
    return round(sum(rates) / len(rates), 1) if rates else None


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
        *(
            Source(files=_named(each.folder, _LIMITS), read=partial(_capped, each.folder))
            for each in find_policies(root)
        ),
        *(Source(files=_named(each, _STATES), read=partial(_cooled, each)) for each in coolers),
        *(Source(files=(each,), read=partial(_counted, each)) for each in counters),
        *([Source(files=firmware.files, read=partial(_asked, firmware))] if firmware is not None else []),
    )


#: Of a group of processors, and of a cooling device.
_LIMITS = ("scaling_min_freq", "scaling_max_freq", "cpuinfo_max_freq")
_STATES = ("cur_state", "max_state")


def _named(folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
    return tuple(folder / each for each in names)


def _costs_speed(cooler: Path) -> bool:
    return _COSTS_SPEED.fullmatch(read_line(cooler / "type") or "") is not None


def _capped(policy: Path) -> Throttling:
    """Tell a highest rate below what the hardware has; a clock that is held at one rate was set so, and counts not."""
    lowest, highest, most = map(read_number, _named(policy, _LIMITS))
    if highest is None or most is None or not 0 < highest <= most:
        return Throttling()
    return Throttling(is_throttled=highest < most and lowest != highest)


def _cooled(cooler: Path) -> Throttling:
    state, most = map(read_number, _named(cooler, _STATES))
    if state is None or state < 0 or (most is not None and state > most):
        return Throttling()
    return Throttling(is_throttled=state > 0)


def _counted(path: Path) -> Throttling:
    count = read_number(path)
    return Throttling(n_events=count if count is not None and count >= 0 else None)


def _asked(firmware: Firmware) -> Throttling:
    reasons = firmware.throttled_by()
    return Throttling(is_throttled=None if reasons is None else bool(reasons))
