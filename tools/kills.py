"""Kills commands at each moment at which they change a file, cuts the power there, and fills the disk there.

    python tools/kills.py                                 200 kills and 200 power cuts of each command, and the rest
    python tools/kills.py --command weights --kills 50    one command
    python tools/kills.py --kinds kill full               some of what can happen

A moment is before the n-th change of a file (open, write, sync, rename, ...), found by a library that is preloaded
(tools/kills_shim.c); a write is cut in its middle. After each, a reader must find what was there before or after the
command and nothing in between, the same command must complete, and what it leaves must be what an undisturbed run
leaves. A power cut loses what was not synced (tools/power_cut.py); what ended with 0 must outlive it. A full disk and a
read-only folder must end with 2 and one line, and change nothing that cannot be completed.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError

sys.path.insert(0, str(Path(__file__).parent))

_SOURCE = Path(__file__).with_name("kills_shim.c")

#: As in kills_shim.c.
_COUNT, _KILL, _REFUSE, _JOURNAL = 1, 2, 3, 4

#: What can happen, by name; of the last two: which error.
KINDS = ("kill", "cut", "full", "read-only")
_ERRORS = {"full": errno.ENOSPC, "read-only": errno.EROFS}

#: What a command says that finds its work done already.
_DONE = re.compile(r"already|nothing|complete")

#: An error of the suite's own, which names a file.
_OURS = re.compile(r"^perfsuite(?: \w+)*: error: [^\s:]+: ", re.MULTILINE)

#: What differs from one moment to the next in what is said.
_CHANCE = re.compile(r"\d{8}T\d{6}Z|[0-9a-f]{16,}|(?<=work-)[\w-]+|(?<= in )\d+ s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a piece of work in a process of its own ended."""

    #: Its exit code; less than 0 for a signal.
    status: int
    said: str
    seen: Any
    n_changes: int


class Bench:
    """Where a command is run again and again, each time in a copy of the same folder."""

    def __init__(self, folder: Path, shim: Path, name: str) -> None:
        import kill_commands
        import power_cut

        self._disk = power_cut.Disk
        self.losses = power_cut.LOSSES
        kill_commands.LIBRARY = shim
        self.command = kill_commands.COMMANDS[name]
        self._age = kill_commands.age
        self._listing: Callable[[], list[str]] = kill_commands.listing
        self._shim = ctypes.CDLL(str(shim))
        self._shim.kills_watch.argtypes = [
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_long,
            ctypes.c_int,
            ctypes.c_char_p,
        ]
        self._folder = folder / "here"
        self._before, self._journal, self._answer = folder / "before", folder / "journal", folder / "answer"
        self._fresh()
        self._checked(self._in_child(self.command.prepare))
        shutil.copytree(self._folder, self._before, symlinks=True)
        self.old = self._see()
        ended = self._in_child(self.command.run, _COUNT)
        self._checked(ended)
        self.n_changes, self.new = ended.n_changes, self._see()
        self._again()
        self.left = self._listed()

    def moments(self, most: int) -> Iterator[int]:
        """Yield numbers of changes, spread over all; each once or more often."""
        for number in range(most):
            yield 1 + (number * self.n_changes // most if most < self.n_changes else number % self.n_changes)

    def kill(self, at: int) -> list[str]:
        """Kill the command at a change; return what is wrong then."""
        self._restored()
        ended = self._in_child(self.command.run, _KILL, at)
        if ended.status != -signal.SIGKILL and ended.status != 0:
            return [f"ended with {ended.status}: {ended.said}"]
        return list(self._problems())

    def journal(self) -> Any:
        """Run the command once; return the disk, before the first change."""
        self._restored()
        shutil.rmtree(self._journal, ignore_errors=True)
        self._journal.mkdir()
        self._checked(self._in_child(self.command.run, _JOURNAL))
        return self._disk(self._folder, self._before, self._journal / "journal")

    def cut(self, disk: Any, at: int, loss: str) -> list[str]:
        """Cut the power after a change; return what is wrong then."""
        disk.play(at)
        shutil.rmtree(self._folder)
        disk.restore(self._folder, loss, at)
        is_done = at == len(disk.lines)
        return list(self._problems(must_be_new=is_done))

    def refuse(self, at: int, error: int) -> list[str]:
        """Refuse a change and all after it; return what is wrong then."""
        self._restored()
        ended = self._in_child(self.command.run, _REFUSE, at, error)
        problems = list(self._problems(must_be_new=ended.status == 0))
        if ended.status not in (0, 2):
            problems.append(f"ended with {ended.status}: {ended.said}")
        elif ended.status == 2 and ("Traceback" in ended.said or not _OURS.search(ended.said)):
            problems.append(f"no line of its own: {ended.said}")
        return problems

    def _problems(self, *, must_be_new: bool = False) -> Iterator[str]:
        """Look at what is there now, and after the command was repeated."""
        ended = self._in_child(self.command.see)
        if ended.status != 0:
            yield f"damaged: {ended.said}"
        elif must_be_new and ended.seen != self.new:
            yield f"lost, though it ended with 0: {_difference(ended.seen, self.new)}"
        elif self.command.is_one_step and ended.seen not in (self.old, self.new):
            yield f"half done: {_difference(ended.seen, self.new)}"
        elif lost := {name for name, value in self.old.items() if ended.seen.get(name) not in (value, self.new[name])}:
            yield f"lost: {lost}"
        self._checked(self._in_child(self._age))
        again = self._again()
        if again.status != 0 and not (again.status == 2 and _DONE.search(again.said)):
            yield f"cannot be repeated: {again.status}, {again.said}"
            return
        ended = self._in_child(self.command.see)
        if ended.status != 0:
            yield f"damaged after it was repeated: {ended.said}"
        elif ended.seen != self.new:
            yield f"differs after it was repeated: {_difference(ended.seen, self.new)}"
        if more := set(self._listed()) - set(self.left):
            yield f"left behind: {sorted(more)}"

    def _again(self) -> Ended:
        return self._in_child(self.command.again or self.command.run)

    def _see(self) -> Any:
        return self._checked(self._in_child(self.command.see)).seen

    def _listed(self) -> list[str]:
        listed: list[str] = self._checked(self._in_child(self._listing)).seen
        return listed

    def _checked(self, ended: Ended) -> Ended:
        if ended.status != 0:
            raise SystemExit(f"undisturbed, it ended with {ended.status}: {ended.said}")
        return ended

    def _fresh(self) -> None:
        for name in ("cache", "tmp"):
            (self._folder / name).mkdir(parents=True)

    def _restored(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._before, self._folder, symlinks=True)

    def _in_child(self, work: Callable[[], Any], mode: int = 0, at: int = 0, error: int = 0) -> Ended:
        """Do something in a process of its own, in the command's folder."""
        self._answer.mkdir(exist_ok=True)
        pid = os.fork()
        if not pid:
            self._child(work, mode, at, error)
        _, status = os.waitpid(pid, 0)
        answer = self._answer / "seen"
        seen, n_changes, modules = json.loads(answer.read_text()) if answer.exists() else (None, 0, [])
        if not mode:
            _import(modules)
        answer.unlink(missing_ok=True)
        said = (self._answer / "said").read_text(errors="replace").strip()
        return Ended(status=os.waitstatus_to_exitcode(status), said=said, seen=seen, n_changes=n_changes)

    def _child(self, work: Callable[[], Any], mode: int, at: int, error: int) -> None:
        status = 99
        try:
            os.chdir(self._folder)
            out = os.open(self._answer / "said", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.dup2(out, 2)
            folders = {"XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
            os.environ.update({name: str(self._folder / folder) for name, folder in folders.items()})
            tempfile.tempdir = None
            watched, notes = str(self._folder), str(self._journal)
            if mode == _JOURNAL:
                os.environ.update(PERFSUITE_KILLS_ROOT=watched, PERFSUITE_KILLS_JOURNAL=notes)
            self._shim.kills_watch(mode, watched.encode(), at, error, notes.encode())
            seen = work()
            n_changes = self._shim.kills_seen()
            self._shim.kills_watch(0, b"", 0, 0, b"")
            status = seen if isinstance(seen, int) else 0
            (self._answer / "seen").write_text(json.dumps((seen, n_changes, list(sys.modules))))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 2
        except PerfsuiteError as problem:
            self._shim.kills_watch(0, b"", 0, 0, b"")
            os.write(2, f"perfsuite: error: {problem}".encode())
            status = 2
        except BaseException as problem:
            self._shim.kills_watch(0, b"", 0, 0, b"")
            import traceback

            os.write(2, f"{type(problem).__name__}: {problem}\n{traceback.format_exc()[-500:]}".encode())
        finally:
            os._exit(status)


def _import(modules: list[str]) -> None:
    """Import what a child has imported, so that the next need not."""
    for name in modules:
        if name not in sys.modules and name.startswith(("perfsuite", "numpy", "duckdb", "gguf", "rich", "scipy")):
            with suppress(ImportError):
                importlib.import_module(name)


def _difference(seen: Any, wanted: Any) -> str:
    names = [name for name in {**seen, **wanted} if seen.get(name) != wanted.get(name)]
    return f"{len(names)} of {len(wanted)} differ, {names[:2]}"


def outcomes(bench: Bench, kind: str, most: int) -> Iterator[list[str]]:
    """Yield what is wrong, for each of some moments."""
    if kind == "kill":
        yield from map(bench.kill, bench.moments(most))
    elif kind == "cut":
        for loss in bench.losses:
            disk = bench.journal()
            n_cuts = max(1, most // len(bench.losses))
            places = sorted({len(disk.lines), *(round(len(disk.lines) * each / n_cuts) for each in range(n_cuts))})
            yield from (bench.cut(disk, at, loss) for at in places)
    elif kind == "full":
        yield from (bench.refuse(at, _ERRORS[kind]) for at in bench.moments(min(most, bench.n_changes)))
    else:
        yield bench.refuse(1, _ERRORS[kind])


def compiled_shim(folder: Path) -> Path:
    """Compile what is preloaded."""
    shim = folder / "kills_shim.so"
    words = ["cc", "-shared", "-fPIC", "-O1", "-U_FORTIFY_SOURCE", str(_SOURCE), "-o", str(shim)]
    subprocess.run(words, check=True)
    return shim


def _preloaded(options: argparse.Namespace) -> int:
    """Run this program again with the library preloaded, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        shim = compiled_shim(folder)
        words = [sys.executable, __file__, *sys.argv[1:], "--bench", str(folder)]
        return subprocess.run(words, env={**os.environ, "LD_PRELOAD": str(shim)}, check=False).returncode


def _counted(folder: Path, name: str, kind: str, most: int) -> tuple[int, Counter[str]]:
    """Return how many moments were tried, and how often what was wrong."""
    folder.mkdir()
    bench = Bench(folder, folder.parent / "kills_shim.so", name)
    n_moments, wrong = 0, Counter[str]()
    for problems in outcomes(bench, kind, most):
        n_moments += 1
        wrong.update(_CHANCE.sub("*", each) for each in problems)
    shutil.rmtree(folder)
    return n_moments, wrong


def main() -> int:
    """Print a line for each command and kind; what is wrong makes the exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", action="append", metavar="NAME", help="only this command (can be repeated)")
    parser.add_argument("--kills", type=int, default=200, metavar="N", help="moments of each (default 200)")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, help="what happens (default: all)")
    parser.add_argument("--json", action="store_true", help="print JSON, a line each")
    parser.add_argument("--bench", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bench is None:
        return _preloaded(options)
    import kill_commands

    is_wrong = False
    for number, name in enumerate(options.command or kill_commands.COMMANDS):
        for kind in options.kinds:
            n_moments, wrong = _counted(options.bench / f"{number}-{kind}", name, kind, options.kills)
            is_wrong |= bool(wrong)
            if options.json:
                print(json.dumps({"command": name, "kind": kind, "n_moments": n_moments, "wrong": wrong}), flush=True)
                continue
            print(f"| {name} | {kind} | {n_moments} | {sum(wrong.values())} |", flush=True)
            for problem, count in wrong.most_common():
                print(f"    {count} x {problem}", file=sys.stderr, flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
