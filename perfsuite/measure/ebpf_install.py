"""Installs the eBPF recorder's helper where only root can write, with the two capabilities that it needs.

What is trusted: root compiles the sources that lie beside the package that it runs, in a folder that nobody else can
enter, never out of a cache. Whoever may write to that package decides what root runs in any case, Python as well as C;
where that is somebody other than root, the report says so.

*Source*: Linux, capabilities(7), and include/uapi/linux/capability.h (struct vfs_cap_data).
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.measure.ebpf_build import HELPER_NAME, build_helper
from perfsuite.measure.ebpf_helper import HELPER_FOLDER, INSTALL_COMMAND
from perfsuite.measure.native import source_root
from perfsuite.measure.trusted_place import others_can_write

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
        raise MeasurementError(f"installing {HELPER_NAME} takes root; run {INSTALL_COMMAND}")
    sources = source_root("bpf/probes.bpf.c")
    work = Path(tempfile.mkdtemp(prefix="perfsuite-helper-"))
    try:
        built = build_helper(work)
        _make_folder(folder)
        _put(built, folder / HELPER_NAME)
    finally:
        shutil.rmtree(work, ignore_errors=True)
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
            os.fchmod(out.fileno(), 0o755)
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
