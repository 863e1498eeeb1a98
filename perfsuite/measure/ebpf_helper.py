"""Which helper program the eBPF recorder uses, and the one thing that is missing where it cannot be used.

The helper is a program of its own because it needs privileges that the suite has no use for: CAP_BPF and CAP_PERFMON.
One that is installed has them as file capabilities and lies where only root can write; root may do without and use one
out of the cache.

Installs the eBPF recorder's helper where only root can write, with the two capabilities that it needs.

What is trusted: root compiles the sources that are beside the package that it runs, in a folder that nobody else can
enter, never out of a cache. An account that may write to that package decides what root runs in any case, Python as
well as C; where that is somebody other than root, the report says so.

*Source*: Linux, capabilities(7), and include/uapi/linux/capability.h (struct vfs_cap_data).
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError, NativeBuildError, PerfsuiteError
from perfsuite.measure.native import (
    OWN_COMPILERS,
    Compilers,
    build_program,
    has_header,
    make_whole,
    run_step,
    source_root,
)
from perfsuite.measure.phase_tracer import PMU_TYPE


def others_can_write(path: Path) -> Path | None:
    """Return the first of a path and the folders above it that somebody other than root can write; None: only root.

    A folder with the sticky bit, such as ``/tmp``, keeps others from what root has in it.
    """
    for place in (path, *path.parents):
        status = place.stat()
        is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
        if status.st_uid != 0 or is_shared:
            return place
    return None


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
_HELPER_LINKS = ("-pie", "-Wl,--as-needed,-z,relro,-z,now")


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperTarget:
    """A machine that the helper is compiled for, by its name as ``uname -m`` has it; this one unless told."""

    machine: str = field(default_factory=platform.machine)
    #: What its kernel says of its own types.
    kernel_types: Path = KERNEL_TYPES
    compilers: Compilers = OWN_COMPILERS
    #: Where its headers and libraries lie, as arguments of the compiler; empty where the compiler knows.
    flags: tuple[str, ...] = ()
    #: How libbpf is linked.
    libraries: tuple[str, ...] = ("-lbpf",)


#: This kind of machine, for a program that brings libbpf, and what that needs: a device may have neither.
CARRIED = HelperTarget(libraries=("-Wl,-Bstatic", "-lbpf", "-lelf", "-lz", "-Wl,-Bdynamic", "-Wl,--strip-debug"))


def build_obstacle(target: HelperTarget | None = None) -> str | None:
    """Return the first thing that building needs and is not here, with Debian's package; None: all is there."""
    target = target or HelperTarget()
    has_header_file = bool(target.flags) or has_header("bpf/libbpf.h")
    return _first_lack(
        *_of_processor(target.machine),
        _types(target.kernel_types.exists(), target.kernel_types),
        *((_find(tool) is not None, f"no {tool}; install it, Debian's {tool}") for tool in ("clang", "bpftool")),
        (has_header_file, "no bpf/libbpf.h; install libbpf's headers, Debian's libbpf-dev"),
    )


def build_helper(cache_dir: Path, target: HelperTarget | None = None) -> Path:
    """Compile the helper into the cache, for this machine unless told; return its path. One of these sources is kept.

    Raises `NativeBuildError` where something is missing, which the text names, or it does not build.
    """
    root = source_root(_PROGRAMS)
    target = target or HelperTarget()
    if obstacle := build_obstacle(target):
        raise NativeBuildError(f"{HELPER_NAME}: {obstacle}")
    skeleton = _build_skeleton(root, cache_dir, target)
    sources = [path for path in sorted((root / "bpf").glob("*.c")) if not path.name.endswith(".bpf.c")]
    return build_program(
        HELPER_NAME,
        sources,
        root / "include",
        cache_dir,
        extra=(*_HELPER_FLAGS, *target.flags, f"-I{skeleton.parent}"),
        links=(*target.flags, *_HELPER_LINKS, *target.libraries),
        identity=HELPER_NAME,
        compilers=target.compilers,
    )


def _build_skeleton(root: Path, cache_dir: Path, target: HelperTarget) -> Path:
    """Make the header that holds the compiled programs, under a name that follows their sources."""
    sources = sorted({*(root / "bpf").glob("*.h"), *(root / "bpf").glob("*.bpf.c"), *(root / "include").rglob("*.h")})
    digest = hashlib.sha256(repr((_PROGRAM_FLAGS, target.machine)).encode())
    for source in sources:
        digest.update(source.read_bytes())
    made = cache_dir / "native" / f"bpf-programs-{digest.hexdigest()[:16]}" / SKELETON_NAME
    if not made.exists():
        make_whole(made, partial(_make_skeleton, root, target))
    return made


def _make_skeleton(root: Path, target: HelperTarget, work: Path, log: Path) -> None:
    clang, bpftool = str(_find("clang")), str(_find("bpftool"))
    (work / "vmlinux.h").write_text(
        _output([bpftool, "btf", "dump", "file", str(target.kernel_types), "format", "c"], log)
    )
    architecture = f"-D__TARGET_ARCH_{_TARGETS[target.machine]}"
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


#: Where the helper is installed.
HELPER_FOLDER = Path("/usr/local/libexec/perfsuite")

#: ``PS_BPF_VERSION`` of native/include/perfsuite/bpf_log.h.
PROTOCOL_VERSION = 1

INSTALL_COMMAND = "sudo perfsuite trace install-helper"

#: What the kernel calls the first namespace of processes: ``PROC_PID_INIT_INO`` of linux/proc_ns.h.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_LIMIT_S = 60

#: With which CAP_BPF, CAP_PERFMON and the ring buffer came.
_LEAST_KERNEL = (5, 8)
#: Which of its modes a kernel is in, in brackets; the strictest lets no program read the kernel.
LOCKDOWN = Path("/sys/kernel/security/lockdown")

_UNUSABLE = "eBPF cannot be used: "


def find_helper(cache_dir: Path, *, folder: Path = HELPER_FOLDER) -> Path:
    """Return the helper that is installed, or for root without one that can be used the one that it builds.

    Raises `MeasurementError` where there is none, or the machine could not use one, naming the first thing that is
    missing; `NativeBuildError` where root's own does not build.
    """
    if obstacle := _machine_obstacle():
        raise MeasurementError(f"{_UNUSABLE}{obstacle}")
    path = folder / HELPER_NAME
    if (problem := _installed_problem(path)) is None:
        return path
    if os.geteuid() == 0:
        return _own_helper(cache_dir)
    raise MeasurementError(f"{problem}; root installs it: {INSTALL_COMMAND}")


def _own_helper(cache_dir: Path) -> Path:
    """Build root's helper, unless somebody else could put another in its place, as under a sudo that keeps HOME."""
    path = build_helper(cache_dir)
    if place := others_can_write(path.resolve()):
        raise MeasurementError(
            f"{place}: others than root can write there, and root would run what they put there; "
            f"install the helper: {INSTALL_COMMAND}"
        )
    return path


def ebpf_obstacle(cache_dir: Path, *, folder: Path = HELPER_FOLDER) -> str | None:
    """Return the first thing that keeps the eBPF recorder from working here, or None where a probe was set and hit."""
    try:
        return check_helper(find_helper(cache_dir, folder=folder))
    except PerfsuiteError as error:
        return str(error).removeprefix(_UNUSABLE)


def check_helper(helper: Path) -> str | None:
    """Have a helper load its programs and set a probe on itself; return why that fails, or None."""
    try:
        done = _run(helper, "--check")
    except NativeBuildError as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return lines[0].removeprefix("error: ") if lines else f"{helper}: ended with {done.returncode}"


def _machine_obstacle() -> str | None:
    if not sys.platform.startswith("linux"):
        return f"not Linux but {sys.platform}; eBPF is Linux's"
    lockdown = ""
    with suppress(OSError):
        lockdown = LOCKDOWN.read_text()
    return machine_obstacle(
        machine=platform.machine(),
        release=platform.release(),
        has_types=KERNEL_TYPES.exists(),
        has_uprobes=PMU_TYPE.exists(),
        lockdown=lockdown,
        pid_namespace=os.readlink("/proc/self/ns/pid"),
    )


def machine_obstacle(
    *,
    has_types: bool,
    has_uprobes: bool,
    pid_namespace: str,
    machine: str | None = None,
    release: str | None = None,
    lockdown: str = "",
) -> str | None:
    """Return the first thing that keeps a machine from being traced, on which what comes after it depends.

    Helper and compilers come after all of these: neither is of use before. None where nothing is in the way.
    """
    found = re.match(r"(\d+)\.(\d+)", release or "")
    version = (int(found[1]), int(found[2])) if found else _LEAST_KERNEL
    least = ".".join(map(str, _LEAST_KERNEL))
    return _first_lack(
        *_of_processor(machine),
        (version >= _LEAST_KERNEL, f"Linux {release}; eBPF's recorder needs {least} or newer"),
        _types(has_types, KERNEL_TYPES),
        (has_uprobes, f"no uprobe PMU: {PMU_TYPE} is not there; the kernel needs CONFIG_UPROBE_EVENTS"),
        ("[confidentiality]" not in lockdown, f"{LOCKDOWN} is 'confidentiality', expected 'integrity' or 'none'"),
        (
            pid_namespace == _FIRST_PID_NAMESPACE,
            "in a container: not in the first namespace of processes; run on the host",
        ),
    )


def _first_lack(*needs: tuple[bool, str]) -> str | None:
    return next((said for is_met, said in needs if not is_met), None)


def _of_processor(machine: str | None) -> Iterator[tuple[bool, str]]:
    if machine is not None:
        yield machine in _TARGETS, f"no eBPF recorder for {machine}; it is for {' and '.join(_TARGETS)}"


def _types(are_there: bool, path: Path) -> tuple[bool, str]:
    return are_there, f"no BTF: {path} is not there; the kernel needs CONFIG_DEBUG_INFO_BTF"


def _installed_problem(path: Path) -> str | None:
    try:
        status = path.lstat()
    except OSError:
        return f"no helper: {path} is not there"
    if not stat.S_ISREG(status.st_mode) or not _is_roots_own(status):
        return f"{path}: is not a file that belongs to root and that only root can write"
    try:
        said = _run(path, "--version").stdout.split()
    except NativeBuildError as error:
        return str(error)
    if said != [HELPER_NAME, str(PROTOCOL_VERSION)]:
        return f"{path}: says {' '.join(said)!r}, {HELPER_NAME} {PROTOCOL_VERSION} is needed"
    return None


def _is_roots_own(status: os.stat_result) -> bool:
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _run(helper: Path, option: str) -> subprocess.CompletedProcess[str]:
    command = [str(helper), option]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise NativeBuildError(f"{helper}: {option} takes more than {_LIMIT_S} s") from None
    except OSError as error:
        raise NativeBuildError(f"{helper}: does not run ({error.strerror})") from None


CAPABILITIES_ATTRIBUTE = "security.capability"

_CAP_PERFMON, _CAP_BPF = 38, 39
_REVISION_2, _EFFECTIVE = 0x02000000, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledHelper:
    """What was installed: where, from which sources, and what else root should know."""

    path: Path
    sources: Path
    notes: tuple[str, ...]


def install_helper(folder: Path = HELPER_FOLDER) -> InstalledHelper:
    """Compile the helper and put it into a folder, root's own and with file capabilities; an older one is replaced.

    Raises `MeasurementError` where this is not root, somebody else can write to the folder or above it, or
    capabilities do not work there; `NativeBuildError` where it does not build.
    """
    if os.geteuid() != 0:
        raise MeasurementError(f"installing {HELPER_NAME} needs root; run {INSTALL_COMMAND}")
    sources = source_root("bpf/probes.bpf.c")
    with work_folder() as work:
        if place := others_can_write(work.resolve()):
            raise MeasurementError(f"{place}: others than root can write there; let TMPDIR name a folder of root's own")
        built = build_helper(work)
        _make_folder(folder)
        _put(built, folder / HELPER_NAME)
    return InstalledHelper(path=folder / HELPER_NAME, sources=sources, notes=_notes(sources))


def helper_capabilities() -> bytes:
    """Return CAP_BPF and CAP_PERFMON, permitted and effective, as the attribute of a file."""
    wanted = 1 << _CAP_BPF | 1 << _CAP_PERFMON
    return struct.pack("<5I", _REVISION_2 | _EFFECTIVE, wanted & 0xFFFFFFFF, 0, wanted >> 32, 0)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        open_place = others_can_write(folder.resolve())
        is_without_privileges = os.statvfs(folder).f_flag & os.ST_NOSUID
    except OSError as error:
        raise MeasurementError(f"{folder}: cannot be made ({error.strerror})") from None
    if open_place is not None:
        raise MeasurementError(f"{open_place}: others than root can write there; install into a folder of root's own")
    if is_without_privileges:
        raise MeasurementError(f"{folder}: its file system is mounted nosuid: capabilities have no effect there")


def _put(built: Path, path: Path) -> None:
    """Copy beside the path, make it root's, give it the capabilities last, and move it into place."""
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(built.read_bytes())
            out.flush()
            os.fchown(out.fileno(), 0, 0)
            os.fchmod(out.fileno(), 0o755)  # nosec B103  # every user may run it
            os.fsync(out.fileno())
        os.setxattr(partial, CAPABILITIES_ATTRIBUTE, helper_capabilities())
        os.replace(partial, path)
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be installed ({error.strerror})") from None
    finally:
        Path(partial).unlink(missing_ok=True)


def _notes(sources: Path) -> tuple[str, ...]:
    open_place = others_can_write(sources / "bpf")
    if open_place is None:
        return ()
    return (f"built from {sources}, where others than root can write ({open_place}): look at who may",)
