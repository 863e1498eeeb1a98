"""The program of a board, as long as there is a link to it.

The program reads, writes, runs and holds. Whatever needs judgement is computed here, from the board's files: those
below a root of this machine, or copies of them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfsuite.device.governors import refuse_noted, settable_governors
from perfsuite.device.machine import Conditions, Machine
from perfsuite.device.stability.governing import Change, Taken, ask_governors
from perfsuite.device.stability.power_sensors import check_battery
from perfsuite.device.stability.small_files import read_line
from perfsuite.device.stability.stabilised import wait_until_cool
from perfsuite.errors import DeviceError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.link import MessageLink
from perfsuite.measure.board.mirror import FILES, LINKS, Mirror, mirror
from perfsuite.measure.board.program_files import ProgramFiles
from perfsuite.measure.competition import LOOK_S, Competition, competition_of
from perfsuite.measure.contention import ContentionMark, processor_ticks

#: Clock ticks a second, in which /proc counts. *Source*: proc(5), ``USER_HZ``: 100 on all that Linux runs on here.
_TICKS_PER_S = 100


class Program:
    """One program, which is asked for one thing after the other, and what ends with it."""

    def __init__(
        self,
        link: MessageLink,
        welcome: Mapping[str, Any],
        *,
        conditions: Conditions,
        answer_s: float,
        beyond_worker_s: float,
        root: Path | None,
    ) -> None:
        """Go on with a link over which a program said hello."""
        self.link, self._conditions, self._root = link, conditions, root
        self._answer_s, self._beyond_worker_s = answer_s, beyond_worker_s
        self.home, self.bundle, self.cache_dir = (Path(welcome[name]) for name in ("home", "bundle", "cache_dir"))
        self._is_root = bool(welcome["is_root"])
        #: The folder of a run there.
        self.files = ProgramFiles(self.ask)
        #: The variables that its workers would inherit, and Android's properties that name it; once `machine` is known.
        self.variables: tuple[str, ...] = ()
        self.properties: tuple[str, ...] = ()
        self._machine: Machine | None = None
        self._notes: list[str] = []
        self._problems: list[str] = []
        #: Governors that were set for a while, within what the conditions ask for.
        self._for_a_while: list[Change] = []
        self._looked_at: Mirror | None = None
        self._remove_looked_at: weakref.finalize[..., Program] | None = None

    def ask(
        self,
        kind: str,
        arguments: Mapping[str, Any] | None = None,
        limit_s: float | None = None,
        hear: Callable[[Any], None] | None = None,
    ) -> Any:
        """Return the program's answer; `limit_s` is the longest that what it is asked for takes there, if not short.

        `hear` takes what it delivers before that.
        """
        waits_s = self._answer_s if limit_s is None else limit_s + self._beyond_worker_s
        return self.link.ask(kind, arguments or {}, limit_s=waits_s, hear=hear)

    @contextmanager
    def files_of(self, files: tuple[str, ...] = FILES, links: tuple[str, ...] = LINKS) -> Iterator[Mirror]:
        """Give a folder with the board's files that match patterns, as they are now: a copy, or its own root."""
        if self._root is not None:
            yield Mirror(root=self._root)
            return
        with mirror() as board:
            self.lay(board, files, links)
            yield board

    def lay(self, board: Mirror, files: tuple[str, ...] = FILES, links: tuple[str, ...] = LINKS) -> None:
        """Lay out files of the board in a copy of them; its own root has them."""
        if board.root != self._root:
            plain = self.ask("snapshot", {"patterns": list(files), "links": list(links)})
            understood("snapshot", board.lay, plain)

    def files_to_look_at(self) -> Mirror:
        """Return a copy of the board's files in which looks are replayed; it is made once."""
        if self._looked_at is None:
            folder = tempfile.mkdtemp(prefix="perfsuite-board-")
            self._remove_looked_at = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            board = Mirror(root=Path(folder).resolve())
            self.lay(board)
            self._looked_at = board
        return self._looked_at

    def begin(self) -> None:
        """Bring the board into its conditions: governors set, cool enough to begin, battery charged."""
        conditions = self._conditions
        asked = (conditions.governor, conditions.gpu_governor, conditions.start_below_celsius)
        if set(asked) | {conditions.least_battery_ratio} == {None}:
            return
        with self.files_of() as board:
            ask_governors(conditions, self._notes, root=board.root, take=self._take, is_root=self._is_root)

            def sleep(length_s: float) -> None:
                time.sleep(length_s)
                self.lay(board)

            cooled = wait_until_cool(conditions, root=board.root, clock=time.monotonic, sleep=sleep)
            note, problem = check_battery(conditions, board.root)
            self._notes.extend(filter(None, (*cooled.notes, note)))
            self._problems.extend(filter(None, (cooled.problem, problem)))

    def end(self, *, limit_s: float) -> Held | None:
        """As `MessageLink.end`."""
        self.forget()
        held = self.link.end(limit_s=limit_s)
        return None if held is None else self._with_own(held)

    def forget(self) -> None:
        """Remove what was copied here."""
        self.files.close()
        if self._remove_looked_at is not None:
            self._remove_looked_at()
        self._looked_at = None

    def held(self) -> Held:
        """Return what having the board came to so far."""
        return self._with_own(Held.from_plain(self.ask("held")))

    def _with_own(self, held: Held) -> Held:
        return Held(notes=(*held.notes, *self._notes), problems=(*held.problems, *self._problems))

    def machine(self, board: Mirror | None = None) -> Machine:
        """Return the machine, by its files where they are laid out already; asked once."""
        if self._machine is None:
            told = self.ask("machine")
            self.variables, self.properties = tuple(told["variables"]), tuple(told["properties"])
            if board is not None:
                self._machine = machine_of(told, board.root)
            else:
                with self.files_of() as own:
                    self._machine = machine_of(told, own.root)
        return self._machine

    def competition(self) -> Competition:
        """Let the program look for half a second at who else uses the processors."""
        own = {} if self._root is None else {"desk_pid": os.getpid()}
        before, after = self.ask("competition", {"look_s": LOOK_S, **own})
        usable = frozenset(self.machine().usable_processors)
        with mirror() as board:
            first, last = (_mark(board, each, usable) for each in (before, after))
        used = {(pid, start): ticks for pid, start, _, ticks, _ in before["processes"]}
        busy = [
            (name, (ticks - used.get((pid, start), 0)) / _TICKS_PER_S)
            for pid, start, name, ticks, is_own in after["processes"]
            if not is_own and ticks > used.get((pid, start), 0)
        ]
        return competition_of(first.until(last), busy)

    def settable_governors(self, board: Mirror) -> tuple[str, ...]:
        """Return the governors that every core offers and the user there may set."""

        def may_write(files: Sequence[Path]) -> list[bool]:
            told = self.ask("may_write", {"paths": board.paths(files)})
            return understood("may_write", lambda plain: [bool(each) for each in plain], told)

        return settable_governors(board.root, may_write)

    def set_governor(self, governor: str | None) -> None:
        """Have what was set for a while given back, and a governor set on all cores where one is named.

        Raises `DeviceError` where a core does not take it, and all are given back; or does not take its own back.
        """
        changes, self._for_a_while = self._for_a_while, []
        if changes:
            told = self.ask("unset", {"changes": [_plain(each) for each in changes]})
            refuse_noted(understood("unset", lambda plain: [str(each) for each in plain], told))
        if governor is None:
            return
        notes: list[str] = []

        def take(changes: Sequence[Change]) -> list[Taken]:
            taken = self._take(changes)
            self._for_a_while += changes
            return taken

        with self.files_of() as board:
            ask_governors(Conditions(governor=governor), notes, root=board.root, take=take, is_root=self._is_root)
        try:
            refuse_noted(notes)
        except DeviceError:
            self.set_governor(None)
            raise

    def _take(self, changes: Sequence[Change]) -> list[Taken]:
        """Have values written, until the link ends."""
        told = self.ask("set", {"changes": [_plain(each) for each in changes]})
        return understood(
            "set", lambda plain: [Taken(refusal=each["refusal"], read=each["read"]) for each in plain], told
        )


def machine_of(told: Mapping[str, Any], root: Path) -> Machine:
    """Return the machine whose files lie below a root, with what the program says beside them."""
    lines = (read_line(root / "proc/meminfo") or "").splitlines()
    memory_kib = next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
    cpus = root / "sys/devices/system/cpu"
    siblings = {read_line(path) for path in cpus.glob("cpu[0-9]*/topology/core_cpus_list")} or {
        read_line(path) for path in cpus.glob("cpu[0-9]*/topology/thread_siblings_list")
    }
    return Machine(
        hostname=str(told["hostname"]),
        architecture=str(told["architecture"]),
        n_processors=int(told["n_processors"]),
        n_cores=len(siblings) or None,
        memory_bytes=memory_kib * 1024,
        usable_processors=tuple(map(int, told["usable_processors"])),
    )


def _mark(board: Mirror, look: Mapping[str, Any], usable: frozenset[int]) -> ContentionMark:
    board.write("stat", look["stat"])
    ticks = processor_ticks(board.root / "stat", usable)
    own_ns = int(look["own_ns"])
    return ContentionMark(now_ns=int(look["at_ns"]), own_ns=own_ns, running_ns=None, waiting_ns=None, ticks=ticks)


def _plain(change: Change) -> dict[str, Any]:
    return {"path": change.path, "before": change.before, "set_to": list(change.set_to)}
