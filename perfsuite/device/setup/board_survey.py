"""What a bundle has to suit on a board: its machine, its C library, its processors, and the room there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfsuite.device.probe.readings import Readings
from perfsuite.errors import DeviceError
from perfsuite.records.bundle import BundleManifest
from perfsuite.units import format_bytes

#: Besides its files: what the file system keeps for itself, and the journals of a run.
_MARGIN_BYTES = 8_000_000

_VERSION = re.compile(r"(\d+(?:\.\d+)+)\D*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSurvey:
    """What was read on a board."""

    #: What ``uname -m`` says.
    machine: str
    #: The version of its glibc, where that was told; None also where it has another C library.
    glibc: str | None
    #: Whether its C library is musl.
    has_musl: bool
    #: Whether it is Android, whose C library is none of those that are compiled for.
    is_android: bool
    #: What ``/proc/cpuinfo`` lists of every processor.
    features: frozenset[str]
    #: None where it was not told.
    free_bytes: int | None
    #: Where it has OpenCL; None where it has none.
    opencl_loader: str | None = None


def read_board(readings: Readings) -> BoardSurvey:
    """Read what a survey told of a board."""
    libc = readings.text("libc") or ""
    found, lower = _VERSION.search(libc), libc.lower()
    is_glibc = "glibc" in lower or "GNU" in libc
    disk = (readings.text("disk") or "").split()  # as ``df -Pk`` told it
    named = (line.partition(":") for line in readings.all("/proc/cpuinfo"))  # Arm's ``Features``, x86's ``flags``
    features = [frozenset(text.split()) for name, _, text in named if name.strip() in ("Features", "flags")]
    return BoardSurvey(
        machine=readings.text("machine") or "",
        glibc=found[1] if is_glibc and found is not None else None,
        has_musl="musl" in lower,
        is_android=readings.text("ro.build.version.release") is not None,
        features=frozenset.intersection(*features) if features else frozenset(),
        free_bytes=int(disk[3]) * 1024 if len(disk) > 4 and disk[3].isdigit() else None,
        opencl_loader=readings.text("opencl_loader"),
    )


def check_fit(device: str, board: BoardSurvey, manifest: BundleManifest) -> None:
    """Raise `DeviceError` where a bundle does not suit a board: another architecture, or an older glibc."""
    if board.machine not in manifest.machines:
        raise DeviceError(
            f"{device}: is {board.machine or 'of an unknown machine'}, the bundle is for {manifest.target}; "
            f"make one for it with 'perfsuite bundle', or let 'perfsuite devices setup {device}' choose"
        )
    needed = manifest.least_glibc
    if needed is None:
        return
    zig = f"{manifest.machines[0]}-linux-musl" if manifest.target.endswith("musl") else manifest.target
    todo = f"make one with 'perfsuite bundle --target={zig} --compiler=zig' and name it with --bundle"
    if board.has_musl:
        raise DeviceError(f"{device}: has musl, the bundle needs glibc {needed}; {todo}")
    if board.glibc is not None and _numbers(board.glibc) < _numbers(needed):
        raise DeviceError(f"{device}: has glibc {board.glibc}, the bundle needs {needed}; {todo}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def check_room(device: str, board: BoardSurvey, n_bytes: int) -> None:
    """Raise `DeviceError` where there is no room for so many more bytes."""
    needed_bytes = n_bytes + _MARGIN_BYTES
    if n_bytes and board.free_bytes is not None and board.free_bytes < needed_bytes:
        raise DeviceError(
            f"{device}: {format_bytes(board.free_bytes)} are free there, {format_bytes(needed_bytes)} are needed; "
            "make room, or name a folder on another disk as 'home' in [reach] of the profile"
        )
