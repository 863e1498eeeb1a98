"""Making Intel's CPU runtime from PyPI visible to OpenCL, beside the drivers that the system has."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import OpenClError
from perfsuite.records.own_files import own_python

#: Where the loaders look unless OCL_ICD_VENDORS says otherwise.
SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
#: Where Android's vendors have a driver, which no file names.
_VENDOR_DRIVERS = (Path("/vendor/lib64/libOpenCL.so"), Path("/system/vendor/lib64/libOpenCL.so"))
#: The variable that names a loader for where the system has none: pyopencl brings one.
_LOADER = "PERFSUITE_OPENCL_LOADER"
#: The name of the suite's entry; no distribution uses it.
RUNTIME_ICD = "perfsuite-intel-cpu.icd"


def opencl_environment(
    cache_dir: Path, *, inherited: str | None = None, system_vendors: Path = SYSTEM_VENDORS, runtime: Path | None = None
) -> Mapping[str, str]:
    """Return the environment variables that a process which uses OpenCL is started with.

    The runtime's own ``.icd`` file names a path that does not exist, so a vendors directory is written which names its
    library and holds copies of the system's ``.icd`` files. Its name is a digest of its contents: it is made once, in
    one step, and never changed. Without the runtime the loaders are left to their own directory.

    `inherited` is OCL_ICD_VENDORS of this process, a directory or an ``.icd`` file, and stands in for `system_vendors`,
    which need not exist; `runtime` is ``libintelocl.so``, looked for among the installed distributions when left out.

    Raises `OpenClError` where the vendors directory cannot be written.
    """
    loader = _installed_file("pyopencl", "libOpenCL*")
    environment = {} if loader is None else {_LOADER: str(loader)}
    library = find_runtime() if runtime is None else runtime
    if library is None:
        return environment
    entries = _system_entries(Path(inherited) if inherited else system_vendors, library)
    entries[RUNTIME_ICD] = f"{library}\n"
    return {**environment, "OCL_ICD_VENDORS": str(_write_vendors(cache_dir, entries))}


def find_runtime() -> Path | None:
    """Return the library of an installed ``intel-opencl-rt``, or `None`."""
    return _installed_file("intel-opencl-rt", "libintelocl.so")


def _installed_file(distribution: str, pattern: str) -> Path | None:
    """Return the file of a distribution whose name matches; None where either is not installed."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())).resolve() for file in files if fnmatch(file.name, pattern))
    return next((path for path in paths if path.exists()), None)


def lack_of_driver(inherited: str | None, system_vendors: Path = SYSTEM_VENDORS) -> str | None:
    """Return what is missing, and the command that installs it, where no driver is installed; none is loaded."""
    vendors = Path(inherited) if inherited else system_vendors
    if vendors.suffix == ".icd" or any(vendors.glob("*.icd")) or any(path.exists() for path in _VENDOR_DRIVERS):
        return None
    return (
        None
        if find_runtime()
        else "needs an OpenCL driver, and none is installed; run: pip install 'perfsuite[opencl]'"
    )


def runtime_problem() -> str | None:
    """Return why an installed Intel CPU runtime is not seen, or `None` without one; a process of its own loads it."""
    library = find_runtime()
    if library is None:
        return None
    load = own_python("-c", "import ctypes, sys; ctypes.CDLL(sys.argv[-1])", str(library))
    done = subprocess.run(load, capture_output=True, text=True, errors="replace", timeout=60)
    if done.returncode:
        problem = (done.stderr.splitlines() or ["it crashes"])[-1]
        return f"{library.name} of intel-opencl-rt cannot be loaded: {problem}"
    return f"intel-opencl-rt is installed, but no .icd file in OCL_ICD_VENDORS names {library}"


def _system_entries(vendors: Path, library: Path) -> dict[str, str]:
    """Return name and text of the ``.icd`` files of a directory, or of the one that is given, except our library's."""
    paths = [vendors] if vendors.suffix == ".icd" else sorted(vendors.glob("*.icd"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths if os.access(path, os.R_OK)}
    return {name: text for name, text in texts.items() if text.strip() != str(library)}


def _write_vendors(cache_dir: Path, entries: Mapping[str, str]) -> Path:
    digest = hashlib.sha256(repr(sorted(entries.items())).encode()).hexdigest()[:16]
    vendors = cache_dir / f"opencl-vendors-{digest}"
    if vendors.is_dir():
        return vendors
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with work_folder(cache_dir) as work:
            (draft := work / "vendors").mkdir()
            for name, text in entries.items():
                (draft / name).write_text(text, encoding="utf-8")
            try:
                draft.rename(vendors)
            except OSError:
                if not vendors.is_dir():  # unless another process was first with the same contents
                    raise
    except OSError as error:
        raise OpenClError(f"{error.filename}: {error.strerror}; the OpenCL vendors directory goes there") from None
    return vendors
