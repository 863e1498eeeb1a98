"""Takes a bare board through ``docs/tutorial/first-board.md``: the time to its first verdict, and what comes then.

    python tools/first_board.py
    python tools/first_board.py --scenario=p16-g4 -k phase
    python tools/first_board.py --board=arm64

The board is an sshd on a loopback port with a home of its own, in which nothing is installed, and with the OpenCL
drivers of this machine; ``--board=arm64`` is one with the files of Debian for arm64, whose programs are emulated, and
needs root and ``make test-needs``. The bundle is made, or found in the cache, before. Then the clock runs: `perfsuite
devices add`, `probe`, `setup`, and pytest with the phases of a short scenario. It reports what the bundle takes on the
board too.

On the loopback board come setup again and `doctor`, then what ``make perf`` does, over ssh and with
--perf-address=local. Every other argument is handed to all runs. The exit code is 1 where the cases of the last two
differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the test board

from perfsuite.device.reach import Reach  # noqa: E402
from perfsuite.device.target.opening import open_target  # noqa: E402
from perfsuite.errors import MeasurementError, PerfsuiteError  # noqa: E402
from perfsuite.measure.kernel_runtime import opencl_environment  # noqa: E402

_NAME = "first-board"

#: Longest that a step may take, s: llama.cpp is compiled.
_LIMIT_S = 7200.0

#: For the bundle, and the weights of the default model.
_ARM_HOME_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command that a reader types."""

    title: str
    words: tuple[str, ...]
    #: Exit codes with which it has done what it is for.
    accepted: tuple[int, ...] = (0,)


class TestBoard(Protocol):
    """A board of the tests."""

    def reach(self) -> Reach:
        """The way to it."""

    def stop(self) -> None:
        """End it, and remove its files."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the steps, and compare the cases; return the exit code."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--board", choices=BOARDS, default="loopback")
    options, words = parser.parse_known_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="perfsuite-first-") as folder:
            board = BOARDS[options.board](Path(folder))
            try:
                first_verdict(board.reach(), Path(folder), words)
                return compare_with_local(board.reach(), Path(folder), words) if options.board == "loopback" else 0
            finally:
                board.stop()
    except PerfsuiteError as error:
        print(f"{Path(__file__).name}: error: {error}", file=sys.stderr)
        return 2


def _loopback_board(folder: Path) -> TestBoard:
    from tests.board_loopback import LoopbackBoard, loopback_obstacle  # only where there can be one

    if obstacle := loopback_obstacle():
        raise MeasurementError(obstacle)
    return LoopbackBoard(opencl_environment(folder, inherited=os.environ.get("OCL_ICD_VENDORS")))


def _arm_board(_: Path) -> TestBoard:
    from tests.arm_root import emulation_obstacle, find_arm_root  # as above
    from tests.board_namespaces import NamespaceBoard, board_obstacle

    root = find_arm_root()
    obstacle = board_obstacle() or (root if isinstance(root, str) else emulation_obstacle())
    if isinstance(root, str) or obstacle:
        raise MeasurementError(f"--board=arm64: {obstacle}")
    return NamespaceBoard(rootfs=root.root, home_bytes=_ARM_HOME_BYTES)


#: By the name that ``--board`` has for them.
BOARDS: Mapping[str, Callable[[Path], TestBoard]] = {"loopback": _loopback_board, "arm64": _arm_board}


def first_verdict(reach: Reach, folder: Path, words: Sequence[str]) -> None:
    """Set up a bare board whose bundle is kept here, measure until there are verdicts, and tell how long that took."""
    for name in ("kept", "first"):
        (folder / name).mkdir()
    for step in keeping_steps(reach):
        take(step, folder / "kept")
    print("-- the bundle is kept here, nothing is on the board: the clock runs", flush=True)
    since = time.monotonic()
    for step in first_steps(reach, words):
        take(step, folder / "first")
    passed_s = time.monotonic() - since
    outcomes = Counter(cases_of(folder / "first" / "ssh" / "run.json").values())
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(
        f"-- from nothing to the first verdicts ({told}): {passed_s:.0f} s; {_bundle_bytes(reach) / 1e6:.1f} MB there"
    )


def _bundle_bytes(reach: Reach) -> int:
    """Return what setup has put on a board."""
    with closing(open_target(reach)) as target:
        return int(target.run(["sh", "-c", "du -sk ~/.local/share/perfsuite"]).text.split()[0]) * 1024


def compare_with_local(reach: Reach, folder: Path, words: Sequence[str]) -> int:
    """Run over ssh and here what ``make perf`` runs; return the exit code."""
    for step in steps(reach, words):
        take(step, folder)
    told, is_equal = compared(*(cases_of(folder / side / "run.json") for side in ("ssh", "local")))
    print(told)
    return 0 if is_equal else 1


_DEVICES = ("-m", "perfsuite.cli", "devices")


def _known(reach: Reach) -> tuple[Step, ...]:
    """Return what makes a board a device, and its profile say what it is."""
    way = (
        *("--like=generic-ssh", f"--address={reach.address}", f"--port={reach.port}"),
        *(f"--identity-file={reach.identity_file}", f"--known-hosts-file={reach.known_hosts_file}"),
    )
    return (
        Step(title="devices add", words=(*_DEVICES, "add", _NAME, *way)),
        Step(title="devices probe", words=(*_DEVICES, "probe", _NAME, "--force")),
        Step(title="devices setup", words=(*_DEVICES, "setup", _NAME)),
    )


def keeping_steps(reach: Reach) -> tuple[Step, ...]:
    """Return what lets the bundle be in the cache, and the board bare."""
    return (*_known(reach), Step(title="devices setup --remove", words=(*_DEVICES, "setup", _NAME, "--remove")))


def first_steps(reach: Reach, words: Sequence[str]) -> tuple[Step, ...]:
    """Return what is typed until there is a verdict."""
    short = ("--scenario=p16-g4", "--perf-replicates=2", "--perf-calibrate=off", "-kphase")
    return (*_known(reach), _measured("pytest over ssh, phases", "ssh", (*short, *words)))


def steps(reach: Reach, words: Sequence[str]) -> tuple[Step, ...]:
    """Return what is typed to measure over ssh and here, in order."""
    return (
        *_known(reach),
        Step(title="devices setup, again", words=(*_DEVICES, "setup", _NAME)),
        Step(title="devices doctor", words=(*_DEVICES, "doctor", _NAME), accepted=(0, 1)),
        _measured("pytest over ssh", "ssh", words),
        _measured("pytest here", "local", (*words, "--perf-address=local")),
    )


def _measured(title: str, folder: str, words: Sequence[str]) -> Step:
    usual = ("-m", "pytest", "-pno:cacheprovider", f"--device={_NAME}", "--baseline=off", f"--perf-dir={folder}")
    return Step(title=title, words=(*usual, *words), accepted=(0, 1, 6, 10))


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
