"""Builds the eBPF recorder's helper out of ``native/bpf``: clang for the kernel's programs, a C compiler for it."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from functools import partial
from pathlib import Path

from perfsuite.errors import NativeBuildError
from perfsuite.measure.native import build_program, has_header, make_whole, run_step, source_root

HELPER_NAME = "perfsuite-bpf"
SKELETON_NAME = "probes.skel.h"

#: What the kernel says of its own types, from which bpftool writes the header that the programs are compiled against.
KERNEL_TYPES = Path("/sys/kernel/btf/vmlinux")

_PROGRAMS = "bpf/probes.bpf.c"
#: What libbpf calls the processors that the programs can be compiled for.
_TARGETS = {"x86_64": "x86", "aarch64": "arm64"}
#: Where Debian has bpftool, which a user's PATH may lack.
_SYSTEM_PATH = "/usr/sbin:/sbin"

_PROGRAM_FLAGS = ("-g", "-O2", "-Wall", "-target", "bpf", "-mcpu=v3")
_HELPER_FLAGS = ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2")
_HELPER_LINKS = ("-pie", "-Wl,--as-needed,-z,relro,-z,now", "-lbpf")


def build_obstacle() -> str | None:
    """Return the first thing that building needs and this machine lacks, with Debian's package; None: all is there."""
    if platform.machine() not in _TARGETS:
        return f"no eBPF recorder for {platform.machine()}; it is for {' and '.join(_TARGETS)}"
    if not KERNEL_TYPES.exists():
        return f"no BTF: {KERNEL_TYPES} is not there; the kernel needs CONFIG_DEBUG_INFO_BTF"
    for tool in ("clang", "bpftool"):
        if _find(tool) is None:
            return f"no {tool}; install it, Debian's {tool}"
    if not has_header("bpf/libbpf.h"):
        return "no bpf/libbpf.h; install libbpf's headers, Debian's libbpf-dev"
    return None


def build_helper(cache_dir: Path) -> Path:
    """Compile the helper into the cache, and return its path; one with the same sources is kept.

    Raises `NativeBuildError` where something is missing, which the text names, or it does not build.
    """
    root = source_root(_PROGRAMS)
    if obstacle := build_obstacle():
        raise NativeBuildError(f"{HELPER_NAME}: {obstacle}")
    skeleton = _build_skeleton(root, cache_dir)
    sources = [path for path in sorted((root / "bpf").glob("*.c")) if not path.name.endswith(".bpf.c")]
    extra = (*_HELPER_FLAGS, f"-I{skeleton.parent}")
    return build_program(
        HELPER_NAME, sources, root / "include", cache_dir, extra=extra, links=_HELPER_LINKS, identity=HELPER_NAME
    )


def _build_skeleton(root: Path, cache_dir: Path) -> Path:
    """Make the header that holds the compiled programs, under a name that follows their sources."""
    sources = sorted({*(root / "bpf").glob("*.h"), *(root / "bpf").glob("*.bpf.c"), *(root / "include").rglob("*.h")})
    digest = hashlib.sha256(repr((_PROGRAM_FLAGS, platform.machine())).encode())
    for source in sources:
        digest.update(source.read_bytes())
    target = cache_dir / "native" / f"bpf-programs-{digest.hexdigest()[:16]}" / SKELETON_NAME
    if not target.exists():
        make_whole(target, partial(_make_skeleton, root))
    return target


def _make_skeleton(root: Path, work: Path, log: Path) -> None:
    clang, bpftool = str(_find("clang")), str(_find("bpftool"))
    (work / "vmlinux.h").write_text(_output([bpftool, "btf", "dump", "file", str(KERNEL_TYPES), "format", "c"], log))
    architecture = f"-D__TARGET_ARCH_{_TARGETS[platform.machine()]}"
    includes = (f"-I{work}", f"-I{root / 'bpf'}", f"-I{root / 'include'}")
    compiled, linked = work / "probes.bpf.o", work / "probes.o"
    run_step([clang, *_PROGRAM_FLAGS, architecture, *includes, "-c", str(root / _PROGRAMS), "-o", str(compiled)], log)
    run_step([bpftool, "gen", "object", str(linked), str(compiled)], log)
    skeleton = _output([bpftool, "gen", "skeleton", str(linked), "name", "probes"], log)
    (work / SKELETON_NAME).write_text(skeleton)


def _output(command: list[str], log: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        log.write_text(" ".join(command) + "\n" + done.stderr)
        raise NativeBuildError(f"{HELPER_NAME}: {command[0]} returned {done.returncode}; see {log}")
    return done.stdout


def _find(tool: str) -> str | None:
    return shutil.which(tool) or shutil.which(tool, path=_SYSTEM_PATH.replace(":", os.pathsep))
