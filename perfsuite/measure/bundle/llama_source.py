"""The sources of the llama.cpp that a bundle has: those of a release of llama-cpp-python, or a checkout."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path, PurePosixPath

from perfsuite.device.work_folder import new_work_folder
from perfsuite.errors import EngineError, NativeBuildError
from perfsuite.measure.bundle.steps import Tell, run_step
from perfsuite.records.own_files import own_python
from perfsuite.records.whole_file import file_digest, make_folder, place_folder

_PACKAGE = "llama-cpp-python"
_VERSION = re.compile(r"\d+(\.\d+)+")

#: What of a checkout is compiled.
_PARTS = ("CMakeLists.txt", "cmake", "ggml", "include", "src", "vendor")
_NEEDED = ("CMakeLists.txt", "include/llama.h", "ggml/include/ggml.h")
#: Where an archive of the package has llama.cpp.
_VENDORED = ("vendor", "llama.cpp")

_DOWNLOAD_LIMIT_S = 600.0
_GIT_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSource:
    """The sources of a llama.cpp."""

    folder: Path
    #: ``llama-cpp-python 0.3.36``, or a checkout's folder and commit.
    name: str
    #: Over all that is compiled.
    digest: str


def find_llama(named: str | None, cache_dir: Path, tell: Tell) -> LlamaSource:
    """Return the sources of a release, of a checkout, or for None of the release that the suite requires.

    Raises EngineError: they cannot be had, or the folder is no checkout of llama.cpp.
    """
    if named is None:
        named = _required_release()
    is_release = _VERSION.fullmatch(named) is not None and not Path(named).exists()
    folder = _release(named, cache_dir, tell) if is_release else _checkout(named)
    name = f"{_PACKAGE} {named}" if is_release else f"{folder.name}{_commit(folder)}"
    return LlamaSource(folder=folder, name=name, digest=_digest(folder))


def _required_release() -> str:
    """Return the version in the suite's own requirement, as ``llama-cpp-python==0.3.36`` has it."""
    with suppress(PackageNotFoundError):
        required = (each.partition("==") for each in requires("perfsuite") or ())
        if (found := next((version for name, _, version in required if name == _PACKAGE), None)) is not None:
            return found
    raise EngineError(f"perfsuite: its installation does not name a {_PACKAGE}; install it anew, or give --llama")


def _checkout(named: str) -> Path:
    folder = Path(os.path.expanduser(named)).resolve()
    missing = next((each for each in _NEEDED if not os.path.isfile(folder / each)), None)
    if missing is not None:
        raise EngineError(
            f"{named}: is not a checkout of llama.cpp (no {missing}) and no release; "
            f"expected a folder, or a version of {_PACKAGE} such as 0.3.36"
        )
    return folder


def _commit(folder: Path) -> str:
    """Return the commit of a checkout in parentheses; nothing where it has none."""
    asked = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--tags"]
    if not (folder / ".git").exists():
        return ""
    try:
        told = subprocess.run(asked, capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return f" ({told})"


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{file_digest(path)}\n".encode())
    return digest.hexdigest()[:16]


def _files(folder: Path) -> Iterator[Path]:
    for part in _PARTS:
        place = folder / part
        yield from [place] if place.is_file() else sorted(each for each in place.rglob("*") if each.is_file())


def _release(version: str, cache_dir: Path, tell: Tell) -> Path:
    """Return the sources of a release from the cache, where they are downloaded into once."""
    folder = cache_dir / "llama-sources" / version
    if folder.is_dir():
        return folder
    try:
        make_folder(folder.parent)
        made = new_work_folder(str(folder.parent))
    except OSError as error:
        raise EngineError(f"{folder.parent}: cannot be written ({error.strerror})") from error
    try:
        _download(version, made.path, cache_dir / "logs" / f"download-llama-{version}.log", tell)
        archive = next(made.path.glob("*.tar.gz"))
        _unpack(archive, made.path / "llama.cpp")
        if not folder.is_dir():
            place_folder(made.path / "llama.cpp", folder)
    except (OSError, StopIteration, tarfile.TarError) as error:
        raise EngineError(f"{_PACKAGE} {version}: its source cannot be unpacked ({error}); try again") from error
    finally:
        made.remove()
    return folder


def _download(version: str, work: Path, log: Path, tell: Tell) -> None:
    pip = own_python("-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps")
    command = [*pip, "--no-build-isolation", "--no-binary", _PACKAGE, "-d", str(work), f"{_PACKAGE}=={version}"]
    try:
        run_step(f"downloading the source of {_PACKAGE} {version}", command, log, tell, limit_s=_DOWNLOAD_LIMIT_S)
    except NativeBuildError as error:
        raise EngineError(f"{error}; name a release that there is, or a checkout, with --llama") from error


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack what is compiled, plain files alone."""
    with tarfile.open(archive) as packed:
        for member in packed:
            parts = PurePosixPath(member.name).parts[1:]
            inner = parts[len(_VENDORED) :]
            if parts[: len(_VENDORED)] != _VENDORED or not member.isfile() or not inner or ".." in inner:
                continue
            if inner[0] in _PARTS and (content := packed.extractfile(member)) is not None:
                path = folder.joinpath(*inner)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as out:
                    shutil.copyfileobj(content, out)
