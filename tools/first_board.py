"""Takes a bare board through ``docs/tutorial/first-board.md``, and tells whether it has the cases of a local run.

    python tools/first_board.py
    python tools/first_board.py --scenario=p16-g4 -k phase

The board is an sshd on a loopback port with a home of its own, in which nothing is installed; it has the OpenCL drivers
of this machine. `perfsuite devices add`, `probe`, `setup` (twice) and `doctor` come first, then what ``make perf``
does, over ssh and with --perf-address=local. Every argument is handed to both runs of pytest. The exit code is 1 where
their cases differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the test board

from perfsuite.device.reach import Reach  # noqa: E402
from perfsuite.errors import MeasurementError, PerfsuiteError  # noqa: E402
from perfsuite.measure.kernel_runtime import opencl_environment  # noqa: E402

_NAME = "first-board"

#: Longest that a step may take, s: llama.cpp is compiled.
_LIMIT_S = 7200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command that a reader types."""

    title: str
    words: tuple[str, ...]
    #: Exit codes with which it has done what it is for.
    accepted: tuple[int, ...] = (0,)


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the steps, and compare the cases; return the exit code."""
    words = tuple(sys.argv[1:] if arguments is None else arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="perfsuite-first-") as folder:
            take_steps(Path(folder), words)
            told, is_equal = compared(*(cases_of(Path(folder) / side / "run.json") for side in ("ssh", "local")))
    except PerfsuiteError as error:
        print(f"{Path(__file__).name}: error: {error}", file=sys.stderr)
        return 2
    print(told)
    return 0 if is_equal else 1


def take_steps(folder: Path, words: Sequence[str]) -> None:
    """Start a bare board, and type what the tutorial shows."""
    from tests.board_loopback import LoopbackBoard, loopback_obstacle  # only where there can be one

    if obstacle := loopback_obstacle():
        raise MeasurementError(obstacle)
    board = LoopbackBoard(opencl_environment(folder, inherited=os.environ.get("OCL_ICD_VENDORS")))
    try:
        for step in steps(board.reach(), words):
            take(step, folder)
    finally:
        board.stop()


def steps(reach: Reach, words: Sequence[str]) -> tuple[Step, ...]:
    """Return what is typed, in order."""
    way = (
        *("--like=generic-ssh", f"--address={reach.address}", f"--port={reach.port}"),
        *(f"--identity-file={reach.identity_file}", f"--known-hosts-file={reach.known_hosts_file}"),
    )
    devices = ("-m", "perfsuite.cli", "devices")
    measure = ("-m", "pytest", "-pno:cacheprovider", f"--device={_NAME}", "--baseline=off", *words)
    return (
        Step(title="devices add", words=(*devices, "add", _NAME, *way)),
        Step(title="devices probe", words=(*devices, "probe", _NAME, "--force")),
        Step(title="devices setup", words=(*devices, "setup", _NAME)),
        Step(title="devices setup, again", words=(*devices, "setup", _NAME)),
        Step(title="devices doctor", words=(*devices, "doctor", _NAME)),
        Step(title="pytest over ssh", words=(*measure, "--perf-dir=ssh"), accepted=(0, 1, 6, 10)),
        Step(title="pytest here", words=(*measure, "--perf-dir=local", "--perf-address=local"), accepted=(0, 1, 6, 10)),
    )


def take(step: Step, folder: Path) -> None:
    """Run a command, and say how long it took and what it said last.

    Raises
    ------
    MeasurementError
        It ended otherwise than it should, or not at all.
    """
    since = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, *step.words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise MeasurementError(f"{step.title}: not done after {error.timeout:.0f} s") from None
    if done.returncode not in step.accepted:
        raise MeasurementError(f"{step.title}: exit code {done.returncode}\n{done.stdout}")
    last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "")
    print(f"{step.title}: {time.monotonic() - since:.0f} s: {last}", flush=True)


def cases_of(path: Path) -> dict[str, str]:
    """Return the outcome of each case of a run.

    Raises
    ------
    MeasurementError
        There is no such run.
    """
    try:
        return {each["id"]: each["outcome"] for each in json.loads(path.read_text("utf-8"))["cases"]}
    except (OSError, ValueError, KeyError) as error:
        raise MeasurementError(f"{path.name} of the run over {path.parent.name}: cannot be read ({error})") from None


def compared(over_ssh: dict[str, str], here: dict[str, str]) -> tuple[str, bool]:
    """Say which cases only one side has, and how many of each are invalid; and whether the cases are the same."""
    alone = [f"only over ssh: {each}" for each in over_ssh if each not in here]
    alone += [f"only here: {each}" for each in here if each not in over_ssh]
    n_invalid = [sum(outcome == "invalid" for outcome in side.values()) for side in (over_ssh, here)]
    told = f"{len(over_ssh)} cases over ssh ({n_invalid[0]} invalid), {len(here)} here ({n_invalid[1]} invalid)"
    is_equal = bool(over_ssh) and not alone
    return "\n".join([*alone, f"{told}: {'the same' if is_equal else 'not the same'}"]), is_equal


if __name__ == "__main__":
    sys.exit(main())
