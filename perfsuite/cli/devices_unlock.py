"""``perfsuite devices unlock``: say who has a device, or end that run, and restore what a killed one has left."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.devices import add_device_argument, chosen_profile
from perfsuite.device.setup.bundle_scripts import NO_PROGRAM, OLD_SETUP, suite_command
from perfsuite.errors import DeviceError, LockedError
from perfsuite.report.visible import terminal_text

if TYPE_CHECKING:
    from perfsuite.device.profile import Profile
    from perfsuite.device.reach import Reach


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_command(commands, "unlock", summary="restore what a killed run had set, once nobody has the device")
    add_device_argument(parser)
    parser.add_argument("--force", action="store_true", help="first end the run that has the device, which may hang")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    profile = chosen_profile(options)
    words = ("break", "--force") if options.force else ("break",)
    plain = answered(profile, words)
    give(Answer(parts=lambda: map(terminal_text, _told(profile.name, plain)), plain=lambda: plain), options)
    return 0


def answered(profile: Profile, words: tuple[str, ...]) -> dict[str, Any]:
    """Let the program of the device, or of this machine, answer ``perfsuite-worker lock``.

    Raises LockedError: the device refuses; DeviceError: the suite is not on the device, or answers something else;
    LinkError: the device cannot be reached.
    """
    if profile.reach.way == "local":
        from perfsuite.measure.board.local_lock import answered_here  # only where this machine is asked

        plain = answered_here(*words)
    else:
        plain = _asked(profile.name, profile.reach, words)
    if "error" in plain:
        raise LockedError(terminal_text(f"{profile.name}: {plain['error']}"))
    return plain


def _asked(name: str, reach: Reach, words: tuple[str, ...]) -> dict[str, Any]:
    from perfsuite.device.target.opening import open_target  # only where a device is asked

    with closing(open_target(reach)) as target:
        completed = target.run(suite_command(reach.home, "lock", *words))
    if completed.status in NO_PROGRAM:
        seen = OLD_SETUP if completed.last_words == OLD_SETUP else "the suite is not on the device"
        raise DeviceError(f"{name}: {seen} ({reach.text}, {reach.home}); run 'perfsuite devices setup {name}'")
    plain = _plain(completed.text)
    if plain is not None:
        return plain
    told = f"{name}: the suite on the device answers nothing about its lock ({completed.last_words})"
    raise DeviceError(terminal_text(f"{told}; run 'perfsuite devices setup {name}', which brings it up to date"))


def _plain(output: str) -> dict[str, Any] | None:
    """Read the last line, before which a shell may have said something; None where it is no answer."""
    from perfsuite.device.lock_owner import LockOwner  # only where there is an answer

    try:
        plain = json.loads(output.strip().rpartition("\n")[2])
        if "error" in plain:
            return {"error": str(plain["error"])}
        lock = None if plain["lock"] is None else LockOwner.from_plain(plain["lock"]).to_plain()
        return {"lock": lock, "notes": [str(each) for each in plain["notes"]]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _told(name: str, plain: dict[str, Any]) -> list[str]:
    from perfsuite.device.lock_owner import LockOwner  # only where there is an answer

    if plain["lock"] is None:
        return [f"{name}: nobody has it", *plain["notes"]]
    return [f"{name}: was held by {LockOwner.from_plain(plain['lock']).text}; ended", *plain["notes"]]
