"""The machine behind the program of a board: its files are copied here, and read as this machine's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfsuite.device.machine import Machine
from perfsuite.device.stability.small_files import read_line
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.mirror import FILES, LINKS, Mirror, mirror
from perfsuite.measure.competition import LOOK_S, Competition, competition_of
from perfsuite.measure.contention import ContentionMark, processor_ticks

#: Asks the program there: kind and arguments.
Ask = Callable[[str, Mapping[str, Any]], Any]

#: Clock ticks a second, in which /proc counts. *Source*: proc(5), ``USER_HZ``: 100 on all that Linux runs on here.
_TICKS_PER_S = 100


class ProgramMachine:
    """What the program says of its machine; what does not change is asked once."""

    def __init__(self, ask: Ask) -> None:
        """Ask the program for everything."""
        self._ask = ask
        self._machine: Machine | None = None
        #: The variables that its workers would inherit, and Android's properties that name it.
        self.variables: tuple[str, ...] = ()
        self.properties: tuple[str, ...] = ()

    @contextmanager
    def mirrored(self) -> Iterator[Mirror]:
        """Give a folder with the board's files, as they are now."""
        with mirror() as board:
            self.lay(board)
            yield board

    def lay(self, board: Mirror, files: tuple[str, ...] = FILES, links: tuple[str, ...] = LINKS) -> None:
        """Lay out files of the board, by patterns."""
        plain = self._ask("snapshot", {"patterns": list(files), "links": list(links)})
        understood("snapshot", board.lay, plain)

    def machine(self, board: Mirror | None = None) -> Machine:
        """Return the machine, by its files where they are laid out already."""
        if self._machine is None:
            told = self._ask("machine", {})
            self.variables, self.properties = tuple(told["variables"]), tuple(told["properties"])
            if board is not None:
                self._machine = machine_of(told, board.root)
            else:
                with self.mirrored() as own:
                    self._machine = machine_of(told, own.root)
        return self._machine

    def usable_processors(self) -> frozenset[int]:
        """Return the processors that the program may use."""
        return frozenset(self.machine().usable_processors)

    def competition(self) -> Competition:
        """Let the program look for half a second at who else uses the processors."""
        before, after = self._ask("competition", {"look_s": LOOK_S})
        usable = self.usable_processors()
        with mirror() as board:
            first, last = (_mark(board, each, usable) for each in (before, after))
        used = {(pid, start): ticks for pid, start, _, ticks, _ in before["processes"]}
        busy = [
            (name, (ticks - used.get((pid, start), 0)) / _TICKS_PER_S)
            for pid, start, name, ticks, is_own in after["processes"]
            if not is_own and ticks > used.get((pid, start), 0)
        ]
        return competition_of(first.until(last), busy)


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
