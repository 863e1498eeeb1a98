"""Programs of other people on a board, which its own program finds and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.expectation.roofline.ceiling import IndependentRate
from perfsuite.measure.board.frames import understood
from perfsuite.measure.independent_rates import LIMIT_S, PROGRAMS, all_rates, failed_program, late_program
from perfsuite.measure.plan import DevicesPlan, IndependentPlan
from perfsuite.measure.probes import CPU_FOLDER, MEMORY_OVER_CACHE, largest_working_set


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPrograms:
    """Those of a board."""

    #: Asks the program there, and runs a plan there.
    ask: Callable[[str, Mapping[str, Any]], Any]
    run_plan: Callable[[DevicesPlan, Mapping[str, str]], Mapping[str, Any]]
    #: As ``uname -m`` has it there.
    architecture: str

    def rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None], root: Path, physical_bytes: int
    ) -> tuple[IndependentRate, ...]:
        """Measure by those that are there; `root` has the files of the board's caches."""
        if len(self.absent()) > len(PROGRAMS):
            tell(f"no rates of other programs: none of {', '.join(PROGRAMS)} is there")
            return ()
        memory_bytes = largest_working_set(
            n_threads, MEMORY_OVER_CACHE, root / CPU_FOLDER, physical_bytes=physical_bytes
        )
        return all_rates(n_threads, platform, {}, tell, programs=self, memory_bytes=memory_bytes)

    def absent(self) -> tuple[str, ...]:
        """Return what is not on the PATH there; NumPy takes Python."""
        found = {name: self.ask("find_program", {"name": name, "mark": mark}) for name, mark in PROGRAMS.items()}
        return "numpy", *(name for name, path in found.items() if path is None)

    def output(self, command: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run a program."""
        return self._ran(command, environment, None)[0]

    def written(self, command: Sequence[str], option: str, environment: Mapping[str, str]) -> str | None:
        """Run a program that writes a file."""
        return self._ran(command, environment, option)[1]

    def run(self, plan: IndependentPlan | DevicesPlan, environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Run a plan in a worker there."""
        assert isinstance(plan, DevicesPlan)  # NumPy is absent
        return self.run_plan(plan, environment)

    def _ran(
        self, command: Sequence[str], environment: Mapping[str, str], option: str | None
    ) -> tuple[str, str | None]:
        name, *arguments = command
        asked = {
            "name": name,
            "arguments": arguments,
            "environment": dict(environment),
            "limit_s": LIMIT_S,
            "file_option": option,
        }
        return understood("run_program", lambda told: _told(name, told), self.ask("run_program", asked))


def _told(name: str, told: Mapping[str, Any]) -> tuple[str, str | None]:
    printed = bytes(told["output"]).decode("utf-8", "replace")
    if told["is_late"]:
        raise late_program(name, LIMIT_S)
    if told["code"] != 0:
        raise failed_program(name, told["code"], printed)
    written = told["file"]
    return printed, None if written is None else bytes(written).decode("utf-8", "replace")
