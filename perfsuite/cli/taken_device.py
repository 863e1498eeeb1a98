"""Having the device for as long as a command measures: its lock and its conditions, as runs of pytest have them."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perfsuite.cli.ending import fail_in_the_end
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import remarks
from perfsuite.device.end_requests import requests_unheard
from perfsuite.device.profile import Profile
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError, PerfsuiteError
from perfsuite.measure.board.opening import choose_board, desk_claim
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.environment import RUN_ID_NAME, environment_engine
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

#: Is what says something about the device also where ``--quiet`` silences the rest.
_ALOUD = argparse.Namespace(quiet=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenDevice:
    """A device that a command has."""

    board: Board
    #: Under which it has it.
    run_id: str

    @property
    def environment(self) -> Mapping[str, str]:
        """What a program that the command starts needs to know to use the same device meanwhile."""
        return {RUN_ID_NAME: self.run_id}

    def refuse_untrusted(self) -> None:
        """Raise where what was measured so far cannot be trusted: before it is kept for later.

        Raises `DeviceError`: the device was too hot, or somebody has broken its lock.
        """
        problems = self.board.held().problems
        if problems:
            raise DeviceError("; ".join(problems))


@contextmanager
def taken_device(
    profile: Profile, command: str, options: argparse.Namespace, *, reach: Reach | None = None
) -> Iterator[TakenDevice]:
    """Have a device as its profile wants it to be, while something is measured; `command` is the one that does so.

    Within a program that another command has started under its own lock, that lock is shared. Remarks on the
    device go to standard error, as the command's other remarks. `reach` is another way to it than the profile's.

    Raises PerfsuiteError: the options name a model, a scenario or a llama.cpp that there is not, said before the device
    is asked for; LockedError: somebody else has it; DeviceError: it cannot be brought into its conditions; LinkError:
    it cannot be reached.
    """
    cache_dir = user_cache()
    reach = reach or profile.reach
    _refuse_mistakes(options, cache_dir, has_engine=reach.way == "local")
    tell, tell_aloud = remarks(command, options).remark, remarks(command, _ALOUD).remark
    purpose, run_id = f"perfsuite {command} --device={profile.name}", f"{command}-{uuid.uuid4().hex}"
    claim = desk_claim(profile.name, reach, purpose=purpose, run_id=run_id)
    board = choose_board(reach, profile.conditions, claim, cache_dir=cache_dir, tell=tell)
    taken, told, is_measured = TakenDevice(board=board, run_id=claim.run_id), set[str](), False
    try:
        board.open()
        _tell_new(board.held().notes, told, tell)
        taken.refuse_untrusted()
        yield taken
        is_measured = True
    finally:
        try:
            _let_go(board, tell_aloud)
        except (KeyboardInterrupt, SystemExit):  # a second request, just before it would not have been heard
            _let_go(board, tell_aloud)
            raise
        _tell_new(board.held().notes, told, tell)
        problems = board.held().problems if is_measured else ()
        if problems:
            fail_in_the_end()
        _tell_new([f"do not trust what was measured: {each}" for each in problems], told, tell_aloud)


def _refuse_mistakes(options: argparse.Namespace, cache_dir: Path, *, has_engine: bool) -> None:
    """Raise where what the options of many commands name is not there; a board's own engine is for it to find."""
    if (model := getattr(options, "model", None)) is not None:
        resolve(model, cache_dir=cache_dir / "models")
        if has_engine:
            environment_engine()
    if (scenario := getattr(options, "scenario", None)) is not None:
        find_scenario(scenario)


def _let_go(board: Board, tell_aloud: Callable[[str], None]) -> None:
    """Restore the device and give it back; where that fails, say so: what was measured is shown before it counts."""
    try:
        with requests_unheard():
            board.close()
    except PerfsuiteError as error:
        tell_aloud(f"error: {error}")
        fail_in_the_end()


def _tell_new(lines: Sequence[str], told: set[str], tell: Callable[[str], None]) -> None:
    for each in lines:
        if each not in told:
            told.add(each)
            tell(each)
