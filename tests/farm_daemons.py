"""A farm on this machine: labgrid's coordinator and exporter, really running, on ports and in a folder of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from perfsuite.device.farm.client import Client, Holder, Place, places
from perfsuite.device.farm.request import FarmRequest

#: Boards that the exporter has; each place takes one.
_N_BOARDS = 40
_LIMIT_S = 30.0
_NO_FORK = ("env", "GRPC_ENABLE_FORK_SUPPORT=0")


class Farm:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n_places = 0
        self._stack = ExitStack()
        self.coordinator = ""
        self.daemons: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        boards = {f"board{n}": {"NetworkService": _service(n)} for n in range(_N_BOARDS)}
        (self._folder / "exporter.yaml").write_text(json.dumps(boards))  # JSON is YAML
        told = self._daemon("coordinator", ["-l", "127.0.0.1:0"], "listening on ")
        self.coordinator = told.rpartition("listening on ")[2].strip()
        exporter = ["-c", self.coordinator, "-n", "farm1", "--hostname", "localhost", "exporter.yaml"]
        self._daemon("exporter", exporter, "connected to coordinator")

    def stop(self) -> None:
        """End the daemons, and supervisors that would look for them for ten minutes."""
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or ()
            if self.coordinator in words and "perfsuite.device.farm.supervision" in words:
                process.kill()
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()
        self.daemons.clear()
        self._stack.close()

    def client(self, user: str = "somebody") -> Client:
        return Client(request=FarmRequest(coordinator=self.coordinator), holder=Holder(host="desk", user=user))

    def add_board(self, kind: str) -> str:
        """Make a place with the tag ``board=KIND``; return its name."""
        name, resource = f"{kind}-{self._n_places}", f"board{self._n_places}"
        self._n_places += 1
        for words in (["create"], ["add-match", f"farm1/{resource}/*"], ["set-tags", f"board={kind}"]):
            self.client().call("-p", name, *words)
        return name

    def place(self, name: str) -> Place:
        return next(place for place in places(self.client()) if place.name == name)

    def is_free(self, name: str) -> bool:
        place = self.place(name)
        return place.holder is None and place.token is None

    def _daemon(self, name: str, words: list[str], ready: str) -> str:
        log_path = self._folder / f"{name}.log"
        log = self._stack.enter_context(log_path.open("w"))
        command = [*_NO_FORK, sys.executable, "-m", f"labgrid.remote.{name}", *words]
        daemon = subprocess.Popen(
            command, cwd=self._folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL, text=True
        )
        self.daemons.append(daemon)
        found = awaited(lambda: next((line for line in log_path.read_text().splitlines() if ready in line), ""))
        return str(found)


def _service(number: int) -> dict[str, object]:
    return {"address": "127.0.0.1", "port": 2200 + number, "username": "root"}


@contextmanager
def running_farm(folder: Path) -> Iterator[Farm]:
    if find_spec("labgrid") is None:
        pytest.skip("labgrid is not installed; 'make long-needs' installs it")
    farm = Farm(folder)
    try:
        farm.start()
        yield farm
    finally:
        farm.stop()


def awaited(look: Callable[[], object], limit_s: float = _LIMIT_S) -> object:
    """Return what a look finds, as soon as it finds something; fails after a while."""
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        with suppress(OSError):
            if found := look():
                return found
        time.sleep(0.05)
    raise AssertionError(f"nothing was found within {limit_s:g} s")
