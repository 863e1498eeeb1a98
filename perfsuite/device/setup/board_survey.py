"""What a bundle has to suit on a board: its machine, its C library, its processors, and the room there."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    found = _VERSION.search(libc)
    is_glibc = "glibc" in libc.lower() or "GNU" in libc
    return BoardSurvey(
        machine=readings.text("machine") or "",
        glibc=found[1] if is_glibc and found is not None else None,
        has_musl="musl" in libc.lower(),
        is_android=readings.text("ro.build.version.release") is not None,
        features=frozenset.intersection(*features) if (features := list(_features(readings))) else frozenset(),
        free_bytes=_free_disk_bytes(readings),
        opencl_loader=readings.text("opencl_loader"),
    )


def _free_disk_bytes(readings: Readings) -> int | None:
    """Return what is free on the disk that the bundle goes to, as ``df -Pk`` told it."""
    fields = (readings.text("disk") or "").split()
    return int(fields[3]) * 1024 if len(fields) > 4 and fields[3].isdigit() else None


def _features(readings: Readings) -> Iterator[frozenset[str]]:
    """Yield the features of each processor: Arm's ``Features``, x86's ``flags``."""
    for line in readings.all("/proc/cpuinfo"):
        name, _, text = line.partition(":")
        if name.strip() in ("Features", "flags"):
            yield frozenset(text.split())


def check_fit(device: str, board: BoardSurvey, manifest: BundleManifest) -> None:
    """Raise `DeviceError` where a bundle does not suit a board: another architecture, or an older glibc."""
    if board.machine not in manifest.machines:
        raise DeviceError(
            f"{device}: is {board.machine or 'of an unknown machine'}, the bundle is for {manifest.target}; "
            f"make one for it with 'perfsuite bundle', or let 'perfsuite devices setup {device}' choose"
        )
    if manifest.least_glibc is not None and board.has_musl:
        raise DeviceError(f"{device}: has musl, the bundle needs glibc {manifest.least_glibc}; {_zig(manifest)}")
    if manifest.least_glibc is None or board.glibc is None:
        return
    if _numbers(board.glibc) < _numbers(manifest.least_glibc):
        raise DeviceError(
            f"{device}: has glibc {board.glibc}, the bundle needs {manifest.least_glibc}; {_zig(manifest)}"
        )


def _zig(manifest: BundleManifest) -> str:
    zig = f"{manifest.machines[0]}-linux-musl" if manifest.target.endswith("musl") else manifest.target
    return f"make one with 'perfsuite bundle --target={zig} --compiler=zig' and name it with --bundle"


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
