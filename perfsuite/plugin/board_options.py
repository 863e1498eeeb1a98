"""The device that a run measures: how it is reached, how long it is waited for, and what it cannot do from a desk."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.device.address import asked_reach
from perfsuite.device.profile import Profile
from perfsuite.device.reach import Reach
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.opening import choose_board, desk_claim
from perfsuite.measure.board.protocol import Board
from perfsuite.plugin.registration import value_of
from perfsuite.plugin.values import asked_seconds
from perfsuite.report.visible import terminal_text

if TYPE_CHECKING:
    from perfsuite.device.farm.borrowing import FarmBoard


#: Any way but this machine's own: whoever wants a device that is somewhere else is no run of this machine.
_AWAY = Reach(way="ssh")

#: Longest that a board of a farm may take for its first answer.
_LOOK_LIMIT_S = 30.0

#: The board of a farm that a run has; absent where it has none.
FARM_BOARD_KEY: pytest.StashKey[FarmBoard] = pytest.StashKey()


def on_farm_board(config: pytest.Config, profile: Profile) -> Profile:
    """Borrow a board where ``--farm`` asks for one, and return the profile with the way to it.

    The board is given back when pytest ends. Call it last, when all other options have been found good: it may wait
    for an hour.

    Raises pytest.UsageError: ``--farm-break`` or ``--farm-avoid`` was given without ``--farm``, or ``--farm`` with a
    device that is not reached by ssh; PerfsuiteError: no board could be borrowed; see `borrowed_board`.
    """
    option = config.option
    if option.perf_farm is None:
        for name, place in (("--farm-break", option.perf_farm_break), ("--farm-avoid", option.perf_farm_avoid)):
            if place is not None:
                raise pytest.UsageError(f"{name}={place}: needs --farm")
        return profile
    if profile.reach.way != "ssh":
        how = "this machine" if profile.reach.way == "local" else f"reached by {profile.reach.way}"
        raise pytest.UsageError(f"--farm: {profile.name} is {how}; name a --device that is reached by ssh")
    from perfsuite.device.farm.borrowing import borrowed_board  # only a run on a farm needs them
    from perfsuite.device.farm.request import farm_request

    request = farm_request(
        option.perf_farm,
        wait=option.perf_farm_wait,
        broken_place=option.perf_farm_break,
        avoided=option.perf_farm_avoid,
    )
    stack = ExitStack()
    config.add_cleanup(stack.close)
    lent = borrowed_board(
        profile.kind, profile.reach, request, tell=lambda text: _tell_beside(config, text), look=_look
    )
    board = config.stash[FARM_BOARD_KEY] = stack.enter_context(lent)
    return replace(profile, reach=board.reach)


def _look(reach: Reach) -> None:
    """Have a board do something; raises LinkError where it cannot be reached, MeasurementError where it takes long."""
    from perfsuite.device.target.opening import open_target  # only a board of a farm is looked at

    with closing(open_target(reach)) as target:
        target.run(["true"], limit_s=_LOOK_LIMIT_S)


def _tell_beside(config: pytest.Config, text: str) -> None:
    """Print a line beside whatever pytest captures."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        print(f"perfsuite: {terminal_text(text)}", file=sys.stderr, flush=True)


#: Options whose cases depend on the board.
_LISTED_BY_BOARD = ("--perf-sweep", "--perf-overhead", "--perf-trace")

#: Options with which pytest shows something and runs no test.
_MERELY_SHOWING = (
    *("cacheshow", "collectonly", "help", "markers", "setuponly", "setupplan"),
    *("show_fixtures_per_test", "showfixtures", "version"),
)


def is_to_measure(option: argparse.Namespace) -> bool:
    """Whether a run is to measure: it neither lists cases, fixtures or markers alone, nor prints a help."""
    return not any(getattr(option, name, None) for name in _MERELY_SHOWING)


def lists_by_board(option: argparse.Namespace) -> bool:
    """Whether the cases that a run lists depend on the board: on its processors, governors, or kernels."""
    return (
        bool(option.collectonly) and not option.perf_plan and any(value_of(option, name) for name in _LISTED_BY_BOARD)
    )


def asked_board(option: argparse.Namespace, profile: Profile, run_id: str, *, cache_dir: Path) -> Board:
    """Return the board that the options name; it is not reached yet.

    Raises pytest.UsageError: an option's value is not accepted; DeviceError: there is no such address.
    """
    reach = asked_reach("--perf-address", option.perf_address, profile.reach)
    wait_s = asked_seconds("--perf-wait", option.perf_wait) if option.perf_wait else 0.0
    purpose = f"pytest --device={profile.name}"
    if option.perf_plan or option.perf_ingest:
        claim = desk_claim(profile.name, _AWAY, purpose=purpose, run_id=run_id, wait_s=wait_s)
        return _folder_board(option, profile, claim, cache_dir)
    claim = desk_claim(profile.name, reach, purpose=purpose, run_id=run_id, wait_s=wait_s)
    return choose_board(reach, profile.conditions, claim, cache_dir=cache_dir, tell=_tell)


def _folder_board(option: argparse.Namespace, profile: Profile, claim: Claim, cache_dir: Path) -> Board:
    """Return the board that a folder stands for: one that is planned, or one that was somewhere."""
    from perfsuite.measure.board import folder_board  # few runs have one

    if option.perf_ingest:
        results = Path(option.perf_results) if option.perf_results else None
        folder = Path(option.perf_ingest)
        return folder_board.answered_board(folder, results, profile.conditions, claim, cache_dir=cache_dir)
    if option.perf_threads is None:
        raise pytest.UsageError(
            f"--perf-plan={option.perf_plan}: nobody can ask {profile.name} how many cores it has; say --threads=N"
        )
    n_pairs: int = option.perf_plan_pairs
    if n_pairs < 1:
        raise pytest.UsageError(f"--perf-plan-pairs={n_pairs}: expected an integer of 1 or more")
    folder = Path(option.perf_plan)
    return folder_board.planned_board(folder, profile.conditions, claim, n_pairs=n_pairs, cache_dir=cache_dir)


def _tell(text: str) -> None:
    """Say what is waited for; pytest captures nothing while it is configured, nor between tests."""
    print(f"perfsuite: {text}", flush=True)
