"""Debian for arm64 as ``make long-needs`` keeps it, and what compiles for it and runs its programs here."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .board_keys import INSTALL

_TOOL = Path(__file__).resolve().parents[1] / "tools" / "arm_root.sh"
_BINFMT = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")

C_COMPILER, COMPILER = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++"
EMULATOR = "qemu-aarch64-static"
SYSTEM_EMULATOR = "qemu-system-aarch64"

#: How CMake compiles for it: what is tested runs under the emulator with the compiler's own C library.
CMAKE_OPTIONS = {
    "CMAKE_SYSTEM_NAME": "Linux",
    "CMAKE_SYSTEM_PROCESSOR": "aarch64",
    "CMAKE_C_COMPILER": C_COMPILER,
    "CMAKE_CXX_COMPILER": COMPILER,
    "CMAKE_CROSSCOMPILING_EMULATOR": f"{EMULATOR};-L;/usr/aarch64-linux-gnu",
}

#: How BPF's type information begins: magic, version, flags, and the size of the header. *Source*: Linux,
#: Documentation/bpf/btf.rst.
_TYPES_BEGIN = struct.pack("<HBBI", 0xEB9F, 1, 0, 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRoot:
    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def opencl_headers(self) -> Path:
        """The folder of OpenCL's headers, without those of its C library."""
        return self.folder / "opencl"

    @property
    def kernel(self) -> Path:
        return self.folder / "kernel"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"

    def kernel_types(self) -> bytes:
        """What its ``/sys/kernel/btf/vmlinux`` holds, cut out of the kernel: of its types' information, the largest."""
        content = self.kernel.read_bytes()
        found = []
        at = content.find(_TYPES_BEGIN)
        while at >= 0:
            _, types_bytes, names_at, names_bytes = struct.unpack_from("<4I", content, at + 8)
            if names_at == types_bytes and at + 24 + names_at + names_bytes <= len(content):
                found.append(content[at : at + 24 + names_at + names_bytes])
            at = content.find(_TYPES_BEGIN, at + 1)
        return max(found, key=len)


@cache
def find_arm_root() -> ArmRoot | str:
    done = subprocess.run([_TOOL, "--kept"], capture_output=True, text=True, check=False, timeout=60)
    return ArmRoot(folder=Path(done.stdout.strip())) if done.returncode == 0 else done.stderr.strip()


def missing_tool(*names: str) -> str | None:
    missing = [name for name in names if shutil.which(name) is None]
    return f"there is no {missing[0]}; {INSTALL}" if missing else None


def emulation_obstacle() -> str | None:
    """Return why a program for arm64 does not just run here; None where it does."""
    if _BINFMT.exists() and "enabled" in _BINFMT.read_text():
        return None
    return f"this machine does not run programs for arm64: no {_BINFMT}; 'make long-needs' registers it, as root"
