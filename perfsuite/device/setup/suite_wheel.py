"""The suite as one wheel for every machine: Python and native sources, and nothing that is compiled.

What is native is compiled on the device by its own compiler, when it is first needed: `perfsuite.measure.native` does
so wherever a library does not lie beside its source. So one file serves boards of any architecture, and a checkout
that was never built can send it.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfsuite import __version__
from perfsuite.device.setup.distribution_texts import distribution_texts
from perfsuite.errors import DeviceError

#: Sources that must be there: of the probes, of what runs in the engine, of the OpenCL layers.
_NEEDED_SOURCES = ("src/threads.c", "src/engine", "src/opencl", "src/tracer", "include")

#: Folders of native/ that a device compiles from.
_NATIVE_FOLDERS = ("src", "include", "bpf")

_LEFT_OUT_FOLDERS = {"__pycache__", "_native", "_published"}
_LEFT_OUT_SUFFIXES = {".pyc", ".so", ".o"}

#: The oldest date that a zip file knows: equal content makes an equal file.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteWheel:
    """The suite, packed."""

    #: As pip expects it: ``perfsuite-0.1.0-py3-none-any.whl``.
    file_name: str
    content: bytes
    #: Sixteen hex digits over names and content of all files in it: the identity of what is installed.
    digest: str


def pack_suite() -> SuiteWheel:
    """Pack the suite that runs here, a checkout or an installed one.

    Raises DeviceError: the native sources are not there.
    """
    files, texts = dict(_suite_files()), _texts()
    digest = _digest(files, texts)
    info = f"perfsuite-{__version__}.dist-info"
    files |= {f"{info}/{name}": content for name, content in texts.items()}
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    return SuiteWheel(file_name=f"perfsuite-{__version__}-py3-none-any.whl", content=_zipped(files), digest=digest)


def suite_digest() -> str:
    """Return the identity of the suite that runs here, as `SuiteWheel.digest` has it; raises as `pack_suite`."""
    return _digest(dict(_suite_files()), _texts())


def _texts() -> dict[str, bytes]:
    """Return what tells of the distribution, by name."""
    return {name: text.encode() for name, text in distribution_texts(_package().parent).items()}


def _package() -> Path:
    """Return the folder of the package whose code runs: of an editable installation, the checkout's."""
    return Path(__file__).resolve().parents[2]


def _package_places() -> tuple[Path, ...]:
    """Return all folders of the package; an editable installation has one more, with what was compiled."""
    spec = importlib.util.find_spec("perfsuite")
    return tuple(map(Path, (spec.submodule_search_locations or ()) if spec else ()))


def _suite_files() -> Iterator[tuple[str, bytes]]:
    """Yield what is installed, by its path below site-packages."""
    package = _package()
    for path in _files_below(package):
        yield f"perfsuite/{path.relative_to(package).as_posix()}", path.read_bytes()
    native = _native_folder()
    for folder in _NATIVE_FOLDERS:
        for path in _files_below(native / folder):
            yield f"perfsuite/_native/{path.relative_to(native).as_posix()}", path.read_bytes()
    published = _published_folder()
    for path in _files_below(published):
        yield f"perfsuite/_published/{path.relative_to(published).as_posix()}", path.read_bytes()


def _files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and _is_sent(path.relative_to(folder)))


def _is_sent(path: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.parts)
    return not (hidden or _LEFT_OUT_FOLDERS & set(path.parts) or path.suffix in _LEFT_OUT_SUFFIXES)


def _native_folder() -> Path:
    """Return the folder with the native sources: a checkout's, or the installed one."""
    places = (_package().parent / "native", *(place / "_native" for place in _package_places()))
    for place in places:
        if all((place / needed).exists() for needed in _NEEDED_SOURCES):
            return place
    raise DeviceError(
        f"{_package()}: the native sources that a board compiles ({', '.join(_NEEDED_SOURCES)}) are not installed "
        "here; run 'perfsuite devices setup' from a checkout of the suite"
    )


def _published_folder() -> Path:
    in_checkout = _package().parent / "baselines" / "published"
    return in_checkout if in_checkout.is_dir() else _package() / "_published"


def _digest(files: dict[str, bytes], texts: dict[str, bytes]) -> str:
    """Return the identity of these files with what tells of the distribution, whatever its version's folder is."""
    named = files | {f"distribution/{name}": content for name, content in texts.items()}
    digest = hashlib.sha256()
    for name in sorted(named):
        digest.update(f"{name}\0{hashlib.sha256(named[name]).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _record(files: dict[str, bytes], own_name: str) -> bytes:
    """Return the list of files with their hashes, as *Recording installed projects* of packaging.python.org has it."""
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        quoted = f'"{name}"' if "," in name else name
        lines.append(f"{quoted},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{own_name},,", ""]).encode()


def _zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
