"""The suite as one wheel for every machine: Python and native sources, and nothing that is compiled.

What is native is compiled on the device by its own compiler, when it is first needed: `perfsuite.measure.native` does
so wherever a library is not beside its source. So one file serves boards of any architecture, and a checkout
that was never built can send it.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from perfsuite import __version__
from perfsuite.errors import DeviceError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_WHEEL = "Wheel-Version: 1.0\nGenerator: perfsuite\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

#: What is measured: it is compiled on the device, before all else.
_ENGINE_PACKAGE = "llama-cpp-python"


def distribution_texts(root: Path) -> dict[str, str]:
    """Return the files of ``.dist-info``, by name; `root` is the folder that holds the package.

    A checkout's own pyproject.toml comes first: what an editable installation noted does not follow edits.
    """
    project = _checkout_project(root)
    entry_points = _installed_text("entry_points.txt") if project is None else "\n".join(_entry_points(project))
    required = "\n".join(_metadata_requirements() if project is None else _requirements(project))
    metadata = f"Metadata-Version: 2.1\nName: perfsuite\nVersion: {__version__}\nRequires-Python: >=3.10\n{required}\n"
    return {"METADATA": metadata, "WHEEL": _WHEEL, "entry_points.txt": entry_points}


def suite_requirements(root: Path) -> tuple[str, ...]:
    """Return what pip installs beside the suite, without extras."""
    project = _checkout_project(root)
    if project is not None:
        return tuple(project["dependencies"])
    told = (line.partition(": ") for line in _metadata_requirements())
    return tuple(each for field, _, each in told if field == _REQUIRES and "extra ==" not in each)


def engine_requirement(requirements: tuple[str, ...]) -> str:
    """Return the requirement that brings llama.cpp: ``llama-cpp-python==0.3.36``."""
    return next(each for each in requirements if each.startswith(_ENGINE_PACKAGE))


def _checkout_project(root: Path) -> Mapping[str, Any] | None:
    """Return the table ``[project]`` of the checkout in `root`; None where that is none of this suite."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return None
    return project if project.get("name") == "perfsuite" else None


_REQUIRES, _PROVIDES = "Requires-Dist", "Provides-Extra"


def _requirements(project: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of METADATA that say what a checkout requires, extras included."""
    yield from (f"{_REQUIRES}: {each}" for each in project["dependencies"])
    for extra, required in project.get("optional-dependencies", {}).items():
        yield f"{_PROVIDES}: {extra}"
        for requirement, _, marker in (each.partition(";") for each in required):
            given = f"({marker.strip()}) and " if marker else ""
            yield f"{_REQUIRES}: {requirement.strip()}; {given}extra == '{extra}'"


def _metadata_requirements() -> list[str]:
    """Return the same lines of what is installed."""
    lines = _installed_text("METADATA").split("\n\n")[0].splitlines()
    return [line for line in lines if line.startswith((f"{_REQUIRES}: ", f"{_PROVIDES}: "))]


def _entry_points(project: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of entry_points.txt."""
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    for name, entries in groups.items():
        yield f"[{name}]"
        yield from (f"{entry} = {place}" for entry, place in entries.items())
        yield ""


def _installed_text(name: str) -> str:
    try:
        text = distribution("perfsuite").read_text(name)
    except PackageNotFoundError:
        text = None
    if text is None:
        raise DeviceError(f"perfsuite {__version__}: {name} of the installation is not there; reinstall the suite")
    return text


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
