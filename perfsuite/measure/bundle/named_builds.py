"""A llama.cpp by what a user calls it: a build, a release, or a revision of a checkout; compiled where it has to be."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from platform import machine
from tempfile import TemporaryDirectory
from typing import Any

from perfsuite.errors import EngineError, meant
from perfsuite.measure.bundle.compilers import compilers_at_hand, find_toolchain
from perfsuite.measure.bundle.engine_build import EngineOrder, build_engine
from perfsuite.measure.bundle.llama_source import find_llama
from perfsuite.measure.bundle.steps import Tell, one_at_a_time, run_step
from perfsuite.measure.bundle.targets import NATIVE, target_of
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.engine_store import ENGINE, engine_folder, open_store
from perfsuite.measure.environment import environment_of_builds, program_environment
from perfsuite.records.codec import parse_json
from perfsuite.records.whole_file import file_digest, write_json
from perfsuite.units import format_bytes

_RELEASE = re.compile(r"(?:llama-cpp-python==)?(\d+\.\d+\.\d+)")
#: Bits and machine of the processors whose compilers are asked for the very one at hand.
_X86 = (64, 62)
_GIT_LIMIT_S, _LDD_LIMIT_S = 120.0, 60.0
_BUILD_LIMIT_S = 7200.0
#: How a path begins that can be nothing else; a commit that can be nothing else; a library that ldd has found.
_PATHS = ("/", "~", "./", "../")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FOUND = re.compile(r"=> (/.+) \(0x")
#: In a kept build: the hashes of the system's libraries that it was linked with.
_DONE = "perfsuite-done"

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
    _began_s: float = field(default_factory=time.time)

    def check(self, *names: str) -> None:
        """Raise the `EngineError` of a name that means nothing, or several things, before anything is compiled."""
        for named in names:
            self._meant(named)

    def engine(self, named: str, *, with_changes: bool = False) -> Engine:
        """Return the build that is meant; of what is checked out, with the changes that no commit holds.

        Raises `EngineError` where it means nothing, or its libraries or headers are not there; `NativeBuildError` where
        it does not compile.
        """
        make, what = self._meant(named)
        if with_changes:
            assert self.source is not None
            what = _tree_of_changes(self.source)
        return make(what)

    def n_changes(self, named: str) -> int:
        """Return how many files of the checkout are in no commit, where the name means what is checked out."""
        make, commit = self._meant(named)
        if self.source is None or make != self._of_revision or commit != _commit("HEAD", self.source):
            return 0
        return len(_git(self.source, "--no-optional-locks", "status", "--porcelain").splitlines())

    def commit(self, named: str) -> str | None:
        """Return the commit that a name means; None where that is no revision."""
        make, commit = self._meant(named)
        return commit if make == self._of_revision else None

    def age(self, engine: Engine) -> str:
        """Say of when a build is that was kept; "" where it was made now, or is not kept."""
        folder = engine.library_dir.resolve()
        if self.cache_dir.resolve() not in folder.parents or (made_s := folder.stat().st_mtime) >= self._began_s:
            return ""
        return f", kept, of {datetime.fromtimestamp(made_s, timezone.utc):%Y-%m-%d %H:%M} UTC"

    def _meant(self, named: str) -> tuple[Callable[[Any], Engine], Any]:
        """Return what makes the one build that is meant, and of what; raises `EngineError` for none, or several."""
        found = dict[str, tuple[Callable[[Any], Engine], Any]]()
        path = Path(named).expanduser()
        if path.is_dir():
            found[f"the folder ./{named}"] = self._of_folder, path
        elif path.is_file() or path.suffix == ".whl":
            found[f"the file ./{named}"] = self._of_wheel, path
        if found and (named.startswith(_PATHS) or not path.name):
            return next(iter(found.values()))
        if release := _RELEASE.fullmatch(named):
            found[f"the release llama-cpp-python=={release[1]}"] = self._compiled, release[1]
        if not (release and release[1] != named):
            try:
                found |= self._kept_or_revisions(named)
            except EngineError:
                if not found:
                    raise
        if len(found) > 1:
            raise EngineError(f"{named}: means {' and '.join(found)}; write it as one of these")
        return next(iter(found.values()))

    def _kept_or_revisions(self, named: str) -> Mapping[str, tuple[Callable[[Any], Engine], Any]]:
        """Return the kept build that a name means, or the revisions, by the names that mean nothing else."""
        if self.source is None:
            engine_id = self._kept_id(named)
            return {f"the kept build {engine_id}": (self._kept, engine_id)}
        commits = {_commit(named, self.source): named}
        if not _COMMIT.fullmatch(named):
            refs = [f"refs/{kind}/{named}" for kind in ("heads", "tags", "remotes")]
            there = _git(self.source, "for-each-ref", "--format=%(refname)", "refs").split()
            commits |= {_commit(each, self.source): each for each in refs if each in there}
        return {
            f"the revision {commit if name == named else name}": (self._of_revision, commit)
            for commit, name in commits.items()
        }

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
        """Take an engine from the store by its id."""
        store, engine_id = open_store(self.cache_dir), named
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

    def _of_revision(self, commit: str) -> Engine:
        """Take what a commit, or a tree, was built to; build it where any of all that makes it has changed since."""
        assert self.source is not None
        made_of: tuple[object, ...] = (commit, self.command)
        if self.command is not None:
            environment = environment_of_builds()
            made_of = (*made_of, environment, compilers_at_hand(environment))
        key = hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]
        folder = self.cache_dir / "llama-revisions" / f"{commit[:12]}-{key}"
        with one_at_a_time(folder.with_name(f"{folder.name}.lock"), self.tell):
            if not _is_whole(folder):
                shutil.rmtree(folder, ignore_errors=True)
                self._check_out(commit, self.source, folder)
                with suppress(OSError, subprocess.SubprocessError):
                    write_json(folder / _DONE, _linked(folder), EngineError)
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


def _is_whole(folder: Path) -> bool:
    """Whether a build was finished, and the system still has the libraries with which it was linked."""
    try:
        return bool(parse_json((folder / _DONE).read_bytes()) == _linked(folder))
    except (OSError, ValueError, subprocess.SubprocessError):
        return False


def _linked(folder: Path) -> dict[str, str]:
    """Return the hashes of the system's libraries, by path, with which those of a folder are linked."""
    found = set[str]()
    for library in folder.rglob("*.so"):
        done = subprocess.run(["ldd", library], capture_output=True, text=True, check=False, timeout=_LDD_LIMIT_S)
        found |= {path for path in _FOUND.findall(done.stdout) if folder not in Path(path).parents}
    return {path: file_digest(Path(path)) for path in sorted(found)}


def _tree_of_changes(source: Path) -> str:
    """Return the tree of all that git would add in a checkout, whose own index stays as it is."""
    with TemporaryDirectory() as folder:
        environment = program_environment({"GIT_INDEX_FILE": f"{folder}/index"})
        _git(source, "read-tree", "HEAD", environment=environment)
        _git(source, "add", "--all", environment=environment)
        return _git(source, "write-tree", environment=environment).strip()


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


def _git(source: Path, *words: str, what: str = "", environment: Mapping[str, str] | None = None) -> str:
    command = ["git", "-C", str(source), *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_GIT_LIMIT_S, env=environment
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"{source}: git cannot be run there ({error})") from None
    if done.returncode:
        said = (done.stderr.strip() or "there is no such revision").splitlines()[-1]
        raise EngineError(f"{what}{source}: {said}; expected {_ACCEPTED}")
    return done.stdout
