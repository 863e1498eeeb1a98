"""Times the suite under load, in fresh processes, and prints JSON.

    python tools/time_load.py collection [CASES]       # pytest lists so many cases (default 5,000)
    python tools/time_load.py changes [RUNS] [CASES]   # 'history changes' over so many rows (default 2,000 x 500)
    python tools/time_load.py starts [STARTS]          # workers that one process starts (default 10,000)

`processor_s` is the processes' own time, user and system, which neighbours move less than the wall's. With ``--against
PYTHON``, another suite's interpreter, both sides run in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import psutil

from perfsuite.errors import MeasurementError
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import DevicesPlan, dump_record, task_of
from perfsuite.report.history.append import fill_table, run_rows
from perfsuite.report.history.database import database, write_rows
from perfsuite.report.history.folder import COMPACTED
from perfsuite.testing.run_files import synthetic_run

_LIMIT_S = 900
_REPEATS = 5

#: A package whose one experiment enumerates as many cases as the environment says.
_MANY_CASES = """
from perfsuite.expectation.cases import Case
from perfsuite.experiments.protocol import Experiment

class Many(Experiment):
    kind = "many"
    def cases(self):
        yield from (Case(case_id=f"many/p{n}-g4/f{n % 16}/n{n}", kind="many") for n in range({n_cases}))
    def n_steps(self, case_ids): return 0
    def measure(self, case_ids, progress): pass
    def judge(self, case_id, reason): raise NotImplementedError

def open_experiments(config, forecasts): return (Many(),)
"""

#: Runs a command in this interpreter and prints, last of all, what it took of the processors and of memory.
_RUN = """
import json, resource, re, runpy, sys
from pathlib import Path
module, sys.argv = sys.argv[1], sys.argv[1:]
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
except SystemExit as ended:
    assert not ended.code, ended.code
used = resource.getrusage(resource.RUSAGE_SELF)
peak_kb = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]
print("\\n" + json.dumps({"processor_s": used.ru_utime + used.ru_stime, "peak_mb": int(peak_kb) / 1000}))
"""


def run_in_turn(module: str, *arguments: str, folder: Path, against: str | None) -> dict[str, Any]:
    """Run ``python -m MODULE`` on both sides in turn, after a run that compiles; return what they took."""
    sides = {"runs": sys.executable, **({"against": against} if against else {})}
    took: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    answers = set()
    for repeat in range(_REPEATS + 1):
        for side, python in sides.items():
            figures, printed = run_module(python, module, *arguments, folder=folder)
            answers.add(re.sub(r" in [0-9.]+s", "", printed))
            if repeat:
                took[side].append(figures)
    medians = {side: {name: median(run[name] for run in runs) for name in runs[0]} for side, runs in took.items()}
    listed = sum("::" in line for line in printed.splitlines())
    return {"n_listed": listed, "n_different_answers": len(answers), "medians": medians, **took}


def run_module(python: str, module: str, *arguments: str, folder: Path) -> tuple[dict[str, float], str]:
    """Run ``python -m MODULE`` in a fresh process; return what it took, and what it printed."""
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment = {**os.environ, **compiled, "PYTHONPATH": str(folder)}
    began_s = time.perf_counter()
    told = subprocess.run(
        [python, "-c", _RUN, module, *arguments],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=_LIMIT_S,
        env=environment,
        cwd=folder,
    )
    wall_s = time.perf_counter() - began_s
    printed, _, took = told.stdout.rstrip().rpartition("\n")
    figures = {"wall_s": wall_s, **json.loads(took)}
    return {name: round(value, 2) for name, value in figures.items()}, printed


def time_collection(n_cases: int = 5000, against: str | None = None) -> dict[str, Any]:
    """List the cases of a package that brings so many, as a user does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        about = folder / "many_cases-1.0.dist-info"
        about.mkdir()
        (folder / "many_cases.py").write_text(_MANY_CASES.replace("{n_cases}", str(n_cases)))
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: many-cases\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[perfsuite.experiments]\nmany = many_cases:open_experiments\n")
        arguments = ("--collect-only", "-q", "--device=host", "--perf-experiment=many", "-p", "no:cacheprovider")
        return run_in_turn("pytest", *arguments, folder=folder, against=against)


#: Nights of one case after the other; from the middle on, each 25th case takes a fifth longer.
_NIGHTS = """
CREATE OR REPLACE TABLE nights AS SELECT run_rows.* REPLACE (
  printf('%016x', night) AS run_id, $1 + to_days(night::INTEGER) AS started_at, sha1(night::VARCHAR) AS commit_sha,
  (measured_ns * (0.98 + 0.04 * (hash(case_id, night) % 1000) / 1000.0)
    * CASE WHEN hash(case_id) % 25 = 0 AND night >= $4 THEN 1.2 ELSE 1.0 END)::BIGINT AS measured_ns
) FROM run_rows, range($2, $3) AS nights(night)
"""
_BEGAN_AT, _NIGHTS_A_FILE = datetime(2019, 3, 1, 2), 100


def make_history(history_dir: Path, n_runs: int, n_cases: int) -> None:
    """Write a history of so many runs."""
    with database() as connection:
        fill_table(connection, run_rows(synthetic_run(n_cases=n_cases, against=None)))
        for first in range(0, n_runs, _NIGHTS_A_FILE):
            connection.execute(_NIGHTS, [_BEGAN_AT, first, min(first + _NIGHTS_A_FILE, n_runs), n_runs // 2])
            write_rows(connection, "nights", history_dir / COMPACTED / f"{first:08}.parquet")


def time_changes(n_runs: int = 2000, n_cases: int = 500, against: str | None = None) -> dict[str, Any]:
    """Look for changes in all cases of a large history."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_history(folder / "history", n_runs, n_cases)
        arguments = ("history", "changes", f"--history={folder / 'history'}", f"--last={n_runs}")
        took = run_in_turn("perfsuite.cli", *arguments, folder=folder, against=against)
    return {"n_rows": n_runs * n_cases, **took}


#: How workers end badly.
_ENDS = ("no record", "killed", "hangs")
_HANGING_LIMIT_S = 0.02


def count_starts(n_starts: int = 10_000, n_looks: int = 20) -> dict[str, Any]:
    """Start workers one after the other, and look at this process as often; every tenth worker ends badly.

    A worker is a program that leaves its record at once: what the parent does for each is all real.
    """
    plan = DevicesPlan(platform=None)
    ends: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as name,
        patch("tempfile.tempdir", name),
        patch("perfsuite.measure.launch._command") as command,
    ):
        answer, looks = Path(name) / "record", [_look(0)]
        answer.write_bytes(dump_record(task_of(plan), {"devices": []}))
        for start in range(1, n_starts + 1):
            end = _ENDS[start // 10 % len(_ENDS)] if start % 10 == 0 else "answers"
            command.side_effect = partial(_stand_in, end, answer)
            try:
                run_worker(plan, limit_s=_HANGING_LIMIT_S if end == "hangs" else _LIMIT_S)
                ends["answers"] += 1
            except MeasurementError:
                ends["fails"] += 1
            if start % max(1, n_starts // n_looks) == 0:
                command.reset_mock()  # it keeps each call
                looks.append(_look(start))
    return {"n_starts": n_starts, **ends, "looks": looks}


def _stand_in(end: str, answer: Path, _: object, __: Path, record_path: Path) -> tuple[str, ...]:
    return {
        "answers": ("cp", str(answer), str(record_path)),
        "no record": ("false",),
        "killed": ("sh", "-c", "kill -9 $$"),
        "hangs": ("sleep", "60"),
    }[end]


def _look(n_started: int) -> dict[str, int]:
    """Return what this process holds."""
    here = psutil.Process()
    return {
        "n_started": n_started,
        "rss_kb": here.memory_info().rss // 1024,
        "n_files": here.num_fds(),
        "n_threads": here.num_threads(),
        "n_children": len(here.children()),
        "n_left": len(os.listdir(tempfile.gettempdir())),
    }


def main() -> None:
    """Time one of the loads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("load", choices=("collection", "changes", "starts"))
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--against", metavar="PYTHON", help="interpreter of another suite")
    options = parser.parse_args()
    others = {"against": options.against} if options.against else {}
    loads: dict[str, Callable[..., dict[str, Any]]] = {
        "collection": time_collection,
        "changes": time_changes,
        "starts": count_starts,
    }
    print(json.dumps({"load_average": os.getloadavg()[0], **loads[options.load](*options.numbers, **others)}, indent=1))


if __name__ == "__main__":
    main()
