"""A llama.cpp by what a user calls it: a build, a release, or a revision of a checkout; compiled where it has to be."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from platform import machine
from tempfile import TemporaryDirectory

from perfsuite.errors import EngineError, meant
from perfsuite.measure.bundle.compilers import find_toolchain
from perfsuite.measure.bundle.engine_build import EngineOrder, build_engine
from perfsuite.measure.bundle.llama_source import find_llama
from perfsuite.measure.bundle.steps import Tell, one_at_a_time, run_step
from perfsuite.measure.bundle.targets import NATIVE, target_of
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.engine_store import ENGINE, engine_folder, open_store
from perfsuite.units import format_bytes

_RELEASE = re.compile(r"(?:llama-cpp-python==)?(\d+\.\d+\.\d+)")
#: Bits and machine of the processors whose compilers are asked for the very one at hand.
_X86 = (64, 62)
_GIT_LIMIT_S = 120.0
_BUILD_LIMIT_S = 7200.0

_ACCEPTED = (
    "a folder, a release such as llama-cpp-python==0.3.31, a wheel of it, an engine of 'perfsuite engines list', or "
    "with --source a revision of that checkout"
)
#: What a wheel of llama-cpp-python has of llama.cpp, and the most that it may take unpacked.
_WHEEL_FOLDERS = ("llama_cpp/lib/", "include/")
_WHEEL_LIMIT_BYTES = 4 * 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Makes builds for this machine, and keeps them."""

    cache_dir: Path
    tell: Tell
    #: The checkout whose revisions are named.
    source: Path | None = None
    #: Builds a checkout, run by the shell in it; None leaves it to the suite.
    command: str | None = None

    def check(self, *names: str) -> None:
        """Raise the `EngineError` of a name that means nothing, before any of them is compiled."""
        for named in names:
            folder = Path(named).expanduser()
            if folder.is_dir() or folder.is_file() or _RELEASE.fullmatch(named):
                continue
            if self.source is None:
                self._kept_id(named)
            else:
                _commit(named, self.source)

    def engine(self, named: str) -> Engine:
        """Return the build that is meant.

        Raises `EngineError` where it means nothing, or its libraries or headers are not there; `NativeBuildError` where
        it does not compile.
        """
        folder = Path(named).expanduser()
        if folder.is_dir():
            return self._of_folder(folder)
        if folder.suffix == ".whl":
            return self._of_wheel(folder)
        if release := _RELEASE.fullmatch(named):
            return self._compiled(release[1])
        return self._kept(named) if self.source is None else self._of_revision(named, self.source)

    def expanded(self, named: str) -> tuple[str, ...]:
        """Return the builds that a range of revisions stands for, oldest first; anything else stands for itself.

        Raises `EngineError` where git knows no such revisions, or none lie between them.
        """
        old, between, new = named.partition("..")
        if self.source is None or not between or not old or not new or Path(named).expanduser().exists():
            return (named,)
        first, last = _commit(old, self.source), _commit(new, self.source)
        behind = _git(self.source, "rev-list", "--reverse", "--first-parent", f"{first}..{last}").split()
        if not behind:
            raise EngineError(f"{named}: {self.source} has no revisions between them; expected the older one first")
        return (first, *behind)

    def _of_folder(self, folder: Path) -> Engine:
        """Take what was built there; compile a checkout that was not."""
        try:
            return find_engine(folder)
        except EngineError:
            if not (folder / "CMakeLists.txt").is_file():
                raise
        return self._compiled(str(folder))

    def _of_wheel(self, wheel: Path) -> Engine:
        """Unpack libraries and headers of a wheel, once, by its content."""
        try:
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]
            folder = self.cache_dir / "llama-wheels" / digest
            with one_at_a_time(folder.with_name(f"{digest}.lock"), self.tell):
                if not folder.is_dir():
                    _unpack(wheel, folder)
        except (OSError, zipfile.BadZipFile) as error:
            raise EngineError(f"{wheel}: cannot be read as a wheel ({error})") from error
        return find_engine(folder / _WHEEL_FOLDERS[0])

    def _kept_id(self, named: str) -> str:
        store = open_store(self.cache_dir)
        if not any(each.engine_id.startswith(named) and each.kind == ENGINE for each in store.entries()):
            raise EngineError(f"{named}: is not a folder, no release and no kept engine; expected {_ACCEPTED}")
        return store.find(named).engine_id

    def _kept(self, named: str) -> Engine:
        """Take an engine from the store by the beginning of its id."""
        store, engine_id = open_store(self.cache_dir), self._kept_id(named)
        with store.in_use(engine_id):
            folder = store.folder_of(engine_id)
        if folder is None:
            raise EngineError(f"{named}: was removed meanwhile; 'perfsuite engines list' shows what is kept")
        return find_engine(engine_folder(folder))

    def order(self, llama: str) -> EngineOrder:
        """Return how a release or a checkout is compiled for this machine.

        Raises `EngineError`: there is no such one.
        """
        target = target_of(machine(), has_glibc=True)
        processor = target.processor(NATIVE if target.elf == _X86 else None)
        toolchain = find_toolchain("gcc", target, processor)  # before anything is downloaded for it
        source = find_llama(llama, self.cache_dir, self.tell)
        return EngineOrder(source=source, target=target, processor=processor, toolchain=toolchain)

    def _compiled(self, llama: str) -> Engine:
        return build_engine(self.order(llama), self.cache_dir, self.tell)

    def _of_revision(self, named: str, source: Path) -> Engine:
        commit = _commit(named, source)
        key = hashlib.sha256(f"{commit}\0{self.command or ''}".encode()).hexdigest()[:16]
        folder = self.cache_dir / "llama-revisions" / f"{commit[:12]}-{key}"
        done = folder / "perfsuite-done"
        with one_at_a_time(folder.with_name(f"{folder.name}.lock"), self.tell):
            if not done.is_file():
                shutil.rmtree(folder, ignore_errors=True)
                self._check_out(commit, source, folder)
                done.touch()
        return self._compiled(str(folder)) if self.command is None else find_engine(folder)

    def _check_out(self, commit: str, source: Path, folder: Path) -> None:
        """Copy a commit's files, so that the checkout stays as it is, and build it by the user's own command.

        They are built where they stay: libraries name the folder in which they were linked.
        """
        folder.mkdir()
        archive = folder.with_name(f"{folder.name}.tar")
        try:
            _git(source, "archive", "--format=tar", f"--output={archive}", commit)
            run_step(
                f"unpacking {commit[:12]}",
                ["tar", "-xf", str(archive), "-C", str(folder)],
                self._log(commit),
                self.tell,
            )
        finally:
            archive.unlink(missing_ok=True)
        if self.command is not None:
            words = ["sh", "-c", f'cd "$1" && {self.command}', "perfsuite", str(folder)]
            run_step(f"building {commit[:12]}", words, self._log(commit), self.tell, limit_s=_BUILD_LIMIT_S)

    def _log(self, commit: str) -> Path:
        return self.cache_dir / "logs" / f"llama-{commit[:12]}.log"


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive, TemporaryDirectory(prefix=".part-", dir=folder.parent) as draft:
        members = [each for each in archive.infolist() if each.filename.startswith(_WHEEL_FOLDERS)]
        if not any(each.filename.startswith(_WHEEL_FOLDERS[0]) for each in members):
            raise EngineError(f"{wheel}: has no {_WHEEL_FOLDERS[0]}; expected a wheel of llama-cpp-python")
        if sum(each.file_size for each in members) > _WHEEL_LIMIT_BYTES:
            raise EngineError(f"{wheel}: unpacks to more than {format_bytes(_WHEEL_LIMIT_BYTES)}")
        archive.extractall(Path(draft) / "wheel", members)
        (Path(draft) / "wheel").rename(folder)


def _commit(named: str, source: Path) -> str:
    if named.startswith("-"):
        raise EngineError(f"{named}: is not a revision; expected {_ACCEPTED}")
    try:
        return _git(source, "rev-parse", "--verify", "--quiet", f"{named}^{{commit}}", what=f"{named}: ").strip()
    except EngineError as error:
        known: list[str] = []
        with suppress(EngineError):
            known = _git(source, "for-each-ref", "--format=%(refname:short)").split()
        raise EngineError(f"{error}{meant(named, known)}") from None


def _git(source: Path, *words: str, what: str = "") -> str:
    command = ["git", "-C", str(source), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_GIT_LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"{source}: git cannot be run there ({error})") from None
    if done.returncode:
        said = (done.stderr.strip() or "there is no such revision").splitlines()[-1]
        raise EngineError(f"{what}{source}: {said}; expected {_ACCEPTED}")
    return done.stdout
