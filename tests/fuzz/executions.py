"""Reads changed files, many a second, in a process that is held to two seconds and 512 MB for each.

The property: a reader refuses a file with one line, in the error that its docstring names, or returns a value that is
the same once it is written and read again.
"""

from __future__ import annotations

import gc
import hashlib
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfsuite.errors import PerfsuiteError

from .mutation import MOST_BYTES, Mutator
from .readers import READERS, Reader, seeds

#: What one file may take: seconds of the processor, and bytes beside what the process has.
LIMIT_S, LIMIT_BYTES = 2.0, 512 << 20
#: A process that reads nothing for so long hangs.
_STUCK_S = 60.0
#: Contents that a process knows: the seeds, and each that was refused at a place of its own.
_MOST_KNOWN = 2000
#: What a process shares with its parent: how many files it has read, how long the one is that it reads, and that one.
_HEAD = struct.Struct("<QQ")
_MOST_SHARED = 4 << 20


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A file with which the property does not hold."""

    reader: str
    #: What happened, in one line, and where; one that is alike is no other finding.
    what: str
    content: bytes
    #: The stack, where there is one.
    details: str = ""


class BrokenError(Exception):
    """What a reader returned, or the line that it refused with, is not as it has to be."""


def judged(reader: Reader, path: Path) -> tuple[Any, ...]:
    """Read a file; return at which places of the code it was refused, or of what type the value is.

    Raises anything else than the refusal; `BrokenError` where the value is another after it was written and read.
    """
    try:
        value = reader.read(path)
    except (PerfsuiteError, reader.refusal) as error:
        if not str(error):
            raise BrokenError("the error says nothing") from error
        return tuple(_places(error))
    if reader.write is not None and value is not None:
        try:
            reader.write(value, path)
            again = reader.read(path)
        except (PerfsuiteError, reader.refusal) as error:
            raise BrokenError(f"what was read cannot be written and read: {error}") from error
        with _deep_calls():
            if not is_same(value, again):
                raise BrokenError(f"written and read again it differs: {value!r:.300} became {again!r:.300}")
    return (type(value).__name__,)


@contextmanager
def _deep_calls() -> Iterator[None]:
    """Let what compares go as deep as what reads."""
    most = sys.getrecursionlimit()
    sys.setrecursionlimit(most * 10)
    try:
        yield
    finally:
        sys.setrecursionlimit(most)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same, arrays among them."""
    if type(one) is not type(other):
        return False
    if is_dataclass(one) and not isinstance(one, type):
        return all(is_same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


def _places(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yield where an error, and what caused it, came from within the suite."""
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        if "perfsuite" in code.co_filename:
            yield code.co_name, at.tb_lineno
        at = at.tb_next
    if error.__cause__ is not None:
        yield from _places(error.__cause__)


@contextmanager
def work_folder(reader: Reader) -> Iterator[Path]:
    """Make a folder in memory for a reader's file and what is beside it; return the file's path."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perfsuite-fuzz-", dir=place) as folder:
        if reader.beside is not None:
            shutil.copytree(reader.beside, folder, dirs_exist_ok=True)
        yield Path(folder) / reader.name


def replayed(name: str, content: bytes) -> Finding | None:
    """Read one file as the fuzzing does, in a process of its own; return what does not hold."""
    _, found = _in_process(name, lambda process: process.read(content))
    return found[0] if found else None


def fuzzed(name: str, *, seed: int, until: Callable[[int], bool]) -> tuple[int, list[Finding]]:
    """Read changed files until that says so of their number; return the number, and what was found, each once."""
    found: dict[str, Finding] = {}
    n_read, start_seed = 0, seed
    while not until(n_read):
        before, start_seed = n_read, start_seed + 1

        def work(process: _Process, seed: int = start_seed, before: int = before) -> None:
            process.fuzz(seed, lambda n: until(before + n))

        n_done, new = _in_process(name, work)
        for each in new:
            found.setdefault(_kind_of(each), each)
        n_read += n_done
        if not n_done:
            break
    return n_read, list(found.values())


def _kind_of(finding: Finding) -> str:
    return finding.what.split(": ")[0]


def _in_process(name: str, work: Callable[[_Process], object]) -> tuple[int, list[Finding]]:
    """Do the work in a child; return how many files it read and what it found, also what it read where it died."""
    shared = mmap.mmap(-1, _HEAD.size + _MOST_SHARED)
    with work_folder(READERS[name]) as path, tempfile.TemporaryDirectory(prefix="perfsuite-fuzz-") as told:
        log, output = Path(told), Path(told) / "output"
        child = os.fork()
        if child == 0:
            status = 1
            try:
                handle = os.open(output, os.O_CREAT | os.O_WRONLY)
                os.dup2(handle, 2)
                work(_Process(name, path, log, shared))
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        status = _waited(child, shared)
        n_read, n_bytes = _HEAD.unpack_from(shared)
        found = [
            Finding(
                reader=name,
                what=(each.with_suffix(".what")).read_text("utf-8"),
                content=each.read_bytes(),
                details=each.with_suffix(".details").read_text("utf-8"),
            )
            for each in sorted(log.glob("*.content"))
        ]
        if status:
            content = shared[_HEAD.size : _HEAD.size + n_bytes]
            how = f"takes more than {LIMIT_S:g} s" if status == -signal.SIGPROF else f"ended with {status}"
            found.append(Finding(reader=name, what=how, content=content, details=output.read_text("utf-8", "replace")))
        return n_read, found


def _waited(child: int, shared: mmap.mmap) -> int:
    """Wait for a child, as long as it reads; return how it ended."""
    seen, since = b"", time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if (now := shared[: _HEAD.size]) != seen:
            seen, since = now, time.monotonic()
        if time.monotonic() - since > _STUCK_S:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)


class _Process:
    """The child: it reads one file after the other."""

    def __init__(self, name: str, path: Path, log: Path, shared: mmap.mmap) -> None:
        self._name, self._reader, self._path, self._log = name, READERS[name], path, log
        self._shared, self._n_read = shared, 0
        self._kinds: set[str] = set()
        warnings.simplefilter("ignore")
        os.chdir(path.parent)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        self._first_bytes = _most_bytes()
        if not self._reader.has_threads:
            _, most = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (_own_bytes() + LIMIT_BYTES, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        gc.freeze()

    def read(self, content: bytes) -> tuple[Any, ...] | None:
        """Read a file; return what `judged` does, None of a finding, which is noted."""
        self._shared[_HEAD.size : _HEAD.size + len(content)] = content
        self._shared[: _HEAD.size] = _HEAD.pack(self._n_read + 1, len(content))
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(handle, content)
        os.close(handle)
        self._n_read += 1
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        try:
            seen = judged(self._reader, self._path)
            if (grown_bytes := _most_bytes() - self._first_bytes) > LIMIT_BYTES:
                raise BrokenError(f"takes {grown_bytes >> 20} MB")
            return seen
        except BaseException as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._note(error, content)
            return None
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def fuzz(self, seed: int, until: Callable[[int], bool]) -> None:
        """Read changed files, the first of them as they are; what is refused at another place is changed further."""
        mutator, known, places = Mutator(self._reader.form, seed), list(seeds(self._name).values()), set()
        first = list(known)
        while first or not until(self._n_read):
            content = first.pop() if first else self._changed(mutator, known)[:_MOST_SHARED]
            seen = self.read(content)
            if seen is not None and seen not in places:
                places.add(seen)
                if len(content) < MOST_BYTES // 4 and len(known) < _MOST_KNOWN:
                    known.append(content)

    def _changed(self, mutator: Mutator, known: list[bytes]) -> bytes:
        content, other, reader = mutator.one_of(known), mutator.one_of(known), self._reader
        if reader.change is not None and mutator.one_of((True, False)):
            return reader.change(mutator, content, other)
        return reader.seal(mutator.changed(content, other))

    def _note(self, error: BaseException, content: bytes) -> None:
        place = next(reversed(list(_places(error))), ("", 0))
        kind = f"{type(error).__name__} in {place[0]}, line {place[1]}"
        if kind in self._kinds:
            return
        self._kinds.add(kind)
        stem = self._log / hashlib.sha256(content).hexdigest()[:16]
        stem.with_suffix(".what").write_text(f"{kind}: {error}"[:2000], "utf-8", "backslashreplace")
        told = "".join(traceback.format_exception(error)[-12:])
        stem.with_suffix(".details").write_text(told[-6000:], "utf-8", "backslashreplace")
        stem.with_suffix(".content").write_bytes(content)


def _most_bytes() -> int:
    """Return the most memory that the process has had at a time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _own_bytes() -> int:
    """Return how much memory the process has mapped."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return sys.maxsize >> 1
