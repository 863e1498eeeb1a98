"""Energy as x86 processors count it (RAPL)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.power_reading import NOTHING_READ, PowerReading
from perfsuite.device.stability.small_files import entries, read_line, read_number


@dataclass(slots=True, kw_only=True)
class _Counter:
    """One counter of µJ, which begins again at 0 when it is full."""

    folder: Path
    total_uj: int = 0
    _last_uj: int | None = None
    #: It has gone back, and nobody knows by how much.
    _is_lost: bool = False

    def read_uj(self) -> int | None:
        """Return what was counted since the first reading.

        A wrap is undone with ``max_energy_range_uj``, so that there must be a reading in each turn of the counter: one
        is more than a minute even at full load.
        """
        now = read_number(self.folder / "energy_uj")
        if now is None or now < 0 or self._is_lost:
            return None
        passed = 0 if self._last_uj is None else now - self._last_uj
        if passed < 0:
            full = read_number(self.folder / "max_energy_range_uj")
            self._is_lost = full is None or full < (self._last_uj or 0)
            if full is None or self._is_lost:
                return None
            passed += full
        self._last_uj = now
        self.total_uj += passed
        return self.total_uj


@dataclass(slots=True, kw_only=True)
class PackageEnergy:
    """The counters of all packages together, or the one of the whole platform where there is one."""

    counters: tuple[_Counter, ...]
    covers: str
    name: str = "RAPL"

    def read(self) -> PowerReading:
        """Read all counters; nothing where one of them cannot be read, as for users other than root."""
        read = [counter.read_uj() for counter in self.counters]
        known = [each for each in read if each is not None]
        return PowerReading(counted_joules=sum(known) / 1e6) if len(known) == len(read) else NOTHING_READ


def find_package_energy(root: Path) -> tuple[PackageEnergy, ...]:
    """Return the counters; those of parts of a package are left out, for they are in it."""
    folders = entries(root / "sys/class/powercap", "intel-rapl:*")
    named = [(read_line(folder / "name") or "", folder) for folder in folders if folder.name.count(":") == 1]
    whole = [folder for name, folder in named if name == "psys"]
    packages = [folder for name, folder in named if name.startswith("package")]
    if not whole and not packages:
        return ()
    covers = "the platform" if whole else "the processor packages; memory, disks and power supply are left out"
    chosen = whole[:1] or packages
    return (PackageEnergy(counters=tuple(_Counter(folder=each) for each in chosen), covers=covers),)
