"""Times a night's plan of many cells, and runs many on simulated boards: seconds, and memory as the night goes on.

A simulated board is a shell script in the place of pytest, which leaves a run of 500 cases and its JUnit report. The
memory is that of the process that conducts the night, which a plan of as many cells makes anew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfsuite.report.exports.junit import junit_text
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import synthetic_run

_LIMIT_S = 3600
_LOOK_PERIOD_S = 0.25

_BOARD = """#!/bin/sh
for word; do
  case $word in
    --perf-dir=*) folder=${word#*=} ;;
    --junitxml=*) junit=${word#*=} ;;
  esac
done
cp "$0.json" "$folder/run.json" && cp "$0.xml" "$junit"
"""

#: As `perfsuite nightly` does, with a simulated board for pytest.
_NIGHT = """
import sys
from functools import partial
from perfsuite.cli import main, nightly
from perfsuite.nightly.conduct import Night
nightly.Night = partial(Night, program=("/bin/sh", sys.argv[1]))
sys.exit(main(["nightly", *sys.argv[2:]]))
"""


def write_plan(path: Path, n_cells: int, n_boards: int) -> None:
    """Write a plan of so many boards, of the same device but each in a lane of its own."""
    n_each = n_cells // n_boards
    models = ("smollm2-135m-q8_0", "smollm2-135m-q4_0")[: 1 if n_each < 2 else 2]
    scenarios = [f"p{16 + number}-g4" for number in range(n_each // len(models))]
    devices = path.parent / "devices"
    devices.mkdir(exist_ok=True)
    text = f"schema = 1\nmodels = {json.dumps(models)}\nscenarios = {json.dumps(scenarios)}\nnight_limit = '24h'\n"
    for number in range(n_boards):
        reach = f'extends = "generic-ssh"\nkind = "simulated"\n\n[reach]\nway = "ssh"\naddress = "board-{number}"\n'
        (devices / f"board-{number}.toml").write_text(reach)
        text += f'\n[[board]]\ndevice = "board-{number}"\n'
    path.write_text(text)


def dry_run_s(plan: Path) -> tuple[float, str]:
    """Return how long a fresh process takes to check the plan and tell its cells, and its last line."""
    command = [sys.executable, "-m", "perfsuite.cli", "nightly", plan.name, "--dry-run"]
    began_s = time.perf_counter()
    done = subprocess.run(command, cwd=plan.parent, check=True, capture_output=True, text=True, timeout=_LIMIT_S)
    return time.perf_counter() - began_s, done.stdout.splitlines()[-1]


def night(plan: Path, n_cases: int) -> dict[str, Any]:
    """Run the night, and look at its memory meanwhile."""
    board = plan.with_name("board")
    board.write_text(_BOARD)
    run = synthetic_run(n_cases=n_cases, n_regressed=0)
    write_run(run, plan.with_name("one")).rename(board.with_name("board.json"))
    board.with_name("board.xml").write_text(junit_text([run]))
    command = [sys.executable, "-c", _NIGHT, str(board), plan.name, "-o", "nights"]
    began_s, resident_mb = time.perf_counter(), []
    with plan.with_name("night.log").open("w") as log:
        process = subprocess.Popen(command, cwd=plan.parent, stdout=log, stderr=log)
        while process.poll() is None:
            with suppress(OSError, StopIteration):
                resident_mb.append(_resident_mb(process.pid))
            time.sleep(_LOOK_PERIOD_S)
    if process.returncode not in (0, 1, 10, 11):
        raise SystemExit(plan.with_name("night.log").read_text()[-2000:])
    latest = plan.parent / "nights/latest"
    ends = json.loads((latest / "night.json").read_text())["cells"].values()
    tenth = max(1, len(resident_mb) // 10)
    return {
        "seconds": round(time.perf_counter() - began_s, 1),
        "endings": {name: sum(end["ending"] == name for end in ends) for name in {end["ending"] for end in ends}},
        "resident_mb": [round(max(resident_mb[at : at + tenth]), 1) for at in range(0, len(resident_mb), tenth)],
        "summary_bytes": os.path.getsize(latest / "summary.md"),
        "junit_bytes": os.path.getsize(latest / "junit.xml"),
    }


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmRSS:")).split()[1]) / 1000.0


def main() -> None:
    """Time both, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planned", type=int, default=10_000, metavar="N", help="cells planned; default 10,000")
    parser.add_argument("--run", type=int, default=1000, metavar="N", help="cells run; default 1,000")
    parser.add_argument("--boards", type=int, default=50, metavar="N", help="default 50")
    parser.add_argument("--cases", type=int, default=500, metavar="N", help="of each cell; default 500")
    options = parser.parse_args()
    told: dict[str, Any] = vars(options)
    with tempfile.TemporaryDirectory() as folder:
        for n_boards in (options.boards, options.planned):
            plan = Path(folder, f"of-{n_boards}", "plan.toml")
            plan.parent.mkdir()
            write_plan(plan, options.planned, n_boards)
            seconds, line = dry_run_s(plan)
            told[f"planned_s_on_{n_boards}_boards"] = round(seconds, 2)
            told["last_line"] = line
        plan = Path(folder, "night", "plan.toml")
        plan.parent.mkdir()
        write_plan(plan, options.run, options.boards)
        told["night"] = night(plan, options.cases)
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
