"""Files of a board, laid out here, so that the code that reads a machine's own files reads those of the board.

A board that is at the end of a link, and what answers there, need not mean well: nothing is written beside the folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from perfsuite.device.control_groups import OWN_GROUPS

_CPU = "sys/devices/system/cpu"

#: What is read of a device, below its root.
FILES = (
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/loadavg",
    OWN_GROUPS,
    "proc/device-tree/model",
    "proc/device-tree/serial-number",
    "etc/machine-id",
    "var/lib/dbus/machine-id",
    f"{_CPU}/online",
    f"{_CPU}/cpufreq/policy*/related_cpus",
    f"{_CPU}/cpufreq/policy*/scaling_*",
    f"{_CPU}/cpufreq/policy*/cpuinfo_max_freq",
    f"{_CPU}/cpu[0-9]*/thermal_throttle/*_count",
    f"{_CPU}/cpu[0-9]*/topology/core_cpus_list",
    f"{_CPU}/cpu[0-9]*/topology/thread_siblings_list",
    *(
        f"{place}/{name}"
        for place in (
            "sys/class/devfreq/*",
            "sys/class/kgsl/kgsl-3d0/devfreq",
            "sys/class/misc/mali*/device",
            "sys/devices/platform/*.mali",
        )
        for name in ("governor", "available_governors")
    ),
    "sys/devices/platform/soc*/*firmware/get_throttled",
    "sys/class/thermal/thermal_zone*/type",
    "sys/class/thermal/thermal_zone*/temp",
    "sys/class/thermal/cooling_device*/type",
    "sys/class/thermal/cooling_device*/cur_state",
    "sys/class/thermal/cooling_device*/max_state",
    "sys/class/hwmon/hwmon*/name",
    "sys/class/hwmon/hwmon*/*_input",
    "sys/class/hwmon/hwmon*/*_label",
    *(
        f"sys/class/power_supply/*/{name}"
        for name in ("type", "scope", "present", "capacity", "status", "power_now", "current_now", "voltage_now")
    ),
    *(f"sys/class/powercap/intel-rapl:*/{name}" for name in ("name", "energy_uj", "max_energy_range_uj")),
)

#: Links whose targets say what a folder is: which driver a frequency control has, whether two paths are one.
LINKS = (
    "sys/class/devfreq/*",
    "sys/class/devfreq/*/device",
    "sys/class/devfreq/*/device/driver",
    "sys/class/kgsl/kgsl-3d0",
    "sys/class/kgsl/kgsl-3d0/devfreq",
    "sys/class/misc/mali*",
    "sys/class/misc/mali*/device",
    "sys/class/hwmon/hwmon*",
    "sys/class/hwmon/hwmon*/device",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A folder that stands for a board's root."""

    root: Path

    def lay(self, plain: Mapping[str, Any]) -> None:
        """Lay out a snapshot; `ValueError` where it is none, or names what no board has."""
        for path, real in sorted(plain["links"], key=lambda each: each[0].count("/")):
            self._link(_within(path), _within(real))
        for path, content in plain["files"]:
            self.write(path, content or b"")

    def write(self, path: str, content: bytes | None) -> None:
        """Write one file; None removes it."""
        place = self.root / _within(path)
        try:
            if content is None:
                place.unlink(missing_ok=True)
                return
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from error

    def paths(self, files: Sequence[Path]) -> list[str]:
        """Return what files here are called there."""
        return [str(each.relative_to(self.root)) for each in files]

    def _link(self, path: PurePosixPath, real: PurePosixPath) -> None:
        place = self.root / path
        try:
            (self.root / real).mkdir(parents=True, exist_ok=True)
            if not place.is_symlink() and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(self.root / real)
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from error


@contextmanager
def mirror() -> Iterator[Mirror]:
    """Give an empty folder for a board's files, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="perfsuite-board-") as folder:
        yield Mirror(root=Path(folder).resolve())


def _within(path: str) -> PurePosixPath:
    """Return a path below the root; `ValueError` for one that leads out of it."""
    found = PurePosixPath(path)
    if found.is_absolute() or ".." in found.parts or "\0" in path or not found.parts:
        raise ValueError(f"{path!r} leads out of the board's files")
    return found
