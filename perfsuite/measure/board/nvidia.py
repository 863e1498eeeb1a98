"""What ``nvidia-smi`` says of the GPU memory of this machine's processes, while one of them runs.

*Source*: ``nvidia-smi --help-query-compute-apps``.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfsuite.measure.memory_timeline import Vram

_QUERY = ("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
_LIMIT_S = 10.0
#: Time between two questions, each of which starts a program.
_INTERVAL_S = 0.5
_MIB = 1024 * 1024


@dataclass(slots=True, kw_only=True)
class NvidiaUse:
    """What each process has held at the most."""

    program: str = "nvidia-smi"
    #: By process; None where the driver lists it and does not tell.
    _most_bytes: dict[int, int | None] = field(default_factory=dict)
    #: Why nothing was said at all.
    _missing: str = "nvidia-smi is not asked on a board"

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Ask again and again, in a thread, while the context lasts."""
        ended = threading.Event()

        def ask() -> None:
            while not ended.is_set():
                self.ask()
                ended.wait(_INTERVAL_S)

        thread = threading.Thread(target=ask, name="nvidia-smi", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def ask(self) -> None:
        """Ask once."""
        program = shutil.which(self.program)
        if program is None:
            self._missing = "nvidia-smi is not there"
            return
        try:
            asked = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._missing = f"nvidia-smi gave no answer ({type(error).__name__})"
            return
        self._missing = f"nvidia-smi returned {asked.returncode}" if asked.returncode else ""
        now: dict[int, int | None] = {}
        for line in asked.stdout.splitlines() if not asked.returncode else ():
            pid, _, used = (part.strip() for part in line.partition(","))
            if pid.isdigit():
                held = int(used) * _MIB if used.isdigit() else None  # such as ``[N/A]``
                now[int(pid)] = (now.get(int(pid)) or 0) + held if held is not None else now.get(int(pid))
        for process, n_bytes in now.items():
            most = self._most_bytes.get(process)
            self._most_bytes[process] = n_bytes if most is None else max(most, n_bytes or 0)

    def of(self, pid: int) -> Vram:
        """Return what a process has held on all GPUs, or why that is not known."""
        from perfsuite.measure.memory_timeline import Vram  # loaded where this is asked

        if pid not in self._most_bytes:
            return Vram(n_bytes=None, missing=self._missing or "nvidia-smi does not list the process")
        most = self._most_bytes[pid]
        return Vram(n_bytes=most, missing="" if most is not None else "nvidia-smi tells no memory of the process")
