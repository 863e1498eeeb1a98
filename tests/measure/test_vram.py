"""What drivers tell of a process's GPU memory, from made-up /proc trees and a made-up nvidia-smi."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from perfsuite.measure.vram import drm_vram, nvidia_vram, process_vram

PID = 4242
MEBIBYTE = 2**20

AMD = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t{pdev}\n"


def descriptor(proc: Path, number: int, content: str) -> None:
    """Write what one descriptor of the process tells."""
    folder = proc / str(PID) / "fdinfo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(number)).write_text(content)


def amd(client: int = 1, pdev: str = "0000:03:00.0", **regions: str) -> str:
    """What a descriptor of an AMD device tells; underscores stand for dashes."""
    told = "".join(f"{name.replace('_', '-')}:\t{value}\n" for name, value in regions.items())
    return AMD.format(client=client, pdev=pdev) + told


def smi(folder: Path, script: str) -> str:
    """Write a program that stands in for nvidia-smi."""
    path = folder / "fake-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_one_client_is_counted_once(tmp_path: Path) -> None:
    """Two descriptors of one client tell the same memory."""
    for number in (5, 6):
        descriptor(tmp_path, number, amd(drm_memory_vram="2048 KiB"))
    assert drm_vram(PID, proc=tmp_path).n_bytes == 2 * MEBIBYTE


def test_clients_and_devices_are_summed(tmp_path: Path) -> None:
    """Client ids are counted by device, so the same id on another device is another client."""
    descriptor(tmp_path, 5, amd(client=1, drm_memory_vram="1 MiB"))
    descriptor(tmp_path, 6, amd(client=2, drm_memory_vram="2 MiB"))
    descriptor(tmp_path, 7, amd(client=1, pdev="0000:04:00.0", drm_memory_vram="4 MiB"))
    assert drm_vram(PID, proc=tmp_path).n_bytes == 7 * MEBIBYTE


def test_resident_goes_before_total(tmp_path: Path) -> None:
    """What is allocated and swapped out holds no memory of the device."""
    descriptor(tmp_path, 5, amd(drm_total_vram0="64 MiB", drm_resident_vram0="3 MiB", drm_memory_vram0="5 MiB"))
    assert drm_vram(PID, proc=tmp_path).n_bytes == 3 * MEBIBYTE


def test_regions_of_one_client_are_summed(tmp_path: Path) -> None:
    """Each tile has its own; system memory and its like do not count, and a bare number is bytes."""
    descriptor(tmp_path, 5, amd(drm_resident_vram0="1 MiB", drm_resident_vram1="4096", drm_resident_gtt="9 MiB"))
    assert drm_vram(PID, proc=tmp_path).n_bytes == MEBIBYTE + 4096


def test_other_descriptors_do_not_matter(tmp_path: Path) -> None:
    """A file or a socket tells nothing of a device."""
    descriptor(tmp_path, 0, "pos:\t0\nflags:\t02\n")
    seen = drm_vram(PID, proc=tmp_path)
    assert seen.n_bytes is None
    assert seen.missing == "the process has no DRM device open"


def test_a_driver_without_own_memory_is_named(tmp_path: Path) -> None:
    """A GPU that shares the system's memory has no VRAM to tell, which is not 0."""
    descriptor(tmp_path, 5, "drm-driver:\tpanfrost\ndrm-client-id:\t3\ndrm-total-memory:\t8 MiB\n")
    seen = drm_vram(PID, proc=tmp_path)
    assert seen.n_bytes is None
    assert "panfrost" in seen.missing


def test_a_process_that_is_gone_is_told(tmp_path: Path) -> None:
    """Its folder is not there."""
    assert "No such file" in drm_vram(PID, proc=tmp_path).missing


def test_nvidia_tells_mib_of_each_gpu(tmp_path: Path) -> None:
    """Lines of the process are summed, those of others left out."""
    program = smi(tmp_path, f"echo '{PID}, 100'; echo '7, 999'; echo '{PID}, 28'")
    assert nvidia_vram(PID, nvidia_smi=program).n_bytes == 128 * MEBIBYTE


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 9", "nvidia-smi returned 9"),
        ("echo '7, 999'", "does not list the process"),
        (f"echo '{PID}, [N/A]'", "tells no memory"),
        ("echo 'No running processes found'", "does not list the process"),
    ],
)
def test_nvidia_without_an_answer_has_a_reason(tmp_path: Path, script: str, reason: str) -> None:
    """Nothing told is not 0."""
    seen = nvidia_vram(PID, nvidia_smi=smi(tmp_path, script))
    assert seen.n_bytes is None
    assert reason in seen.missing


def test_nvidia_is_asked_where_the_kernel_tells_nothing(tmp_path: Path) -> None:
    """The kernel's account goes first."""
    program = smi(tmp_path, f"echo '{PID}, 5'")
    assert process_vram(PID, proc=tmp_path, nvidia_smi=program).n_bytes == 5 * MEBIBYTE
    descriptor(tmp_path, 5, amd(drm_memory_vram="2 MiB"))
    assert process_vram(PID, proc=tmp_path, nvidia_smi=program).n_bytes == 2 * MEBIBYTE


def test_both_reasons_are_told(tmp_path: Path) -> None:
    """One who wonders why learns what was tried."""
    seen = process_vram(PID, proc=tmp_path, nvidia_smi="no-such-program")
    assert "fdinfo" in seen.missing
    assert "nvidia-smi is not there" in seen.missing
