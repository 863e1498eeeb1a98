"""Stands in for pytest in the tests of nights: takes a cell's options, and leaves what a run of the suite leaves.

Each start is a line of ``$PWD/starts``; what it does is stated by the model: ``passes``, ``fails``, ``breaks``
(always), ``fixes`` (breaks the first time), ``hangs``, ``slow``, ``undecided`` (judges nothing), ``suspects``,
``waits`` (for 3 s, which it says) or ``loses`` (breaks on the board that the first of these got). With
``--farm=HOST:PORT`` it borrows a board for that time.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from perfsuite.device.farm.borrowing import borrowed_board
from perfsuite.device.farm.request import farm_request
from perfsuite.device.reach import Reach
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT, SUSPECT_EXIT

JUNIT = (
    '<testsuites><testsuite name="pytest" tests="1" failures="{0}" errors="0" skipped="0">{1}</testsuite></testsuites>'
)


def main() -> int:
    told = dict(word.lstrip("-").removeprefix("perf-").partition("=")[::2] for word in sys.argv[1:])
    model, folder = told["model"], Path(told["dir"])
    print(f"borrowing for {model}", flush=True)
    farm = farm_request(told["farm"], avoided=told.get("farm-avoid")) if "farm" in told else None
    with nullcontext() if farm is None else borrowed_board(told["device"], Reach(way="ssh"), farm, tell=_told) as board:
        if model.startswith("loses") and board is not None and _is_dead(board.place):
            print("ERROR: ssh board: the link was lost")
            return 4
        began = time.time()
        _note("starts", f"{told['device']} {model} {told['scenario']}")
        status = _measured(model, folder, Path(told["junitxml"]))
        _note("times", f"{began} {time.time()}")
    return status


def _is_dead(place: str) -> bool:
    dead = Path("dead")
    if not dead.exists():
        dead.write_text(place)
    return dead.read_text() == place


def _measured(model: str, folder: Path, junit: Path) -> int:
    if model.startswith("hangs"):
        time.sleep(600)
    if model == "waits":
        print("perfsuite: host: somebody has it; waiting for it, 60 s at most", flush=True)
        time.sleep(3.0)
    time.sleep(1.0 if model.startswith("slow") else 0.1)
    if model == "breaks" or (model == "mends" and not folder.with_name(f"{folder.name}.attempt-1").exists()):
        print("ERROR: ssh board: the link was lost")
        return 4
    outcome = {"fails": "regressed", "undecided": "inconclusive", "suspects": "suspect"}.get(model, "pass")
    case: dict[str, Any] = {"id": "phase/decode", "outcome": outcome}
    (folder / "run.json").write_text(json.dumps({"schema": 1, "interrupted": False, "cases": [case]}))
    junit.write_text(JUNIT.format(int(model == "fails"), '<testcase classname="c" name="decode"/>'))
    return {"fails": 1, "undecided": NOTHING_JUDGED_EXIT, "suspects": SUSPECT_EXIT}.get(model, 0)


def _note(name: str, text: str) -> None:
    with Path(name).open("a") as out:
        out.write(f"{text}\n")


def _told(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
