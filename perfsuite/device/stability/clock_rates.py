"""The rates at which the processors run now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.small_files import entries, read_line, read_number

#: No processor is faster; a higher rate is no rate.
_MOST_KHZ = 20_000_000
_MHZ_OF_CPUINFO = re.compile(r"^cpu MHz\s*:\s*([0-9]{1,5}(?:\.[0-9]+)?)\s*$", re.MULTILINE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A group of processors that share a clock."""

    folder: Path
    #: The numbers of its processors; () where the kernel does not say.
    processors: tuple[int, ...]

    def khz(self) -> int | None:
        """Return the rate now."""
        rate = read_number(self.folder / "scaling_cur_freq")
        return rate if rate is not None and 0 < rate <= _MOST_KHZ else None


def find_policies(root: Path, processors: Sequence[int] = ()) -> tuple[Policy, ...]:
    """Return the groups that the given processors are in; () means all processors."""
    folders = entries(root / "sys/devices/system/cpu/cpufreq", "policy*")
    found = [Policy(folder=each, processors=_processors(each)) for each in folders]
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


def _processors(policy: Path) -> tuple[int, ...]:
    numbers = (read_line(policy / "related_cpus") or "").split()
    return tuple(int(each) for each in numbers if each.isascii() and each.isdecimal())
