"""``perfsuite devices setup`` and ``unlock``: what is installed on a device, and what a killed run has left there."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, fields_of, give
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import Progress, progress
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.reach import Reach
from perfsuite.device.setup.board_survey import BoardSurvey
from perfsuite.device.setup.bundle_scripts import NO_PROGRAM, OLD_SETUP, suite_command
from perfsuite.device.setup.bundle_setup import look_at_board, remove_all, set_up_bundle
from perfsuite.device.target.opening import open_target
from perfsuite.errors import DeviceError, LockedError
from perfsuite.measure.board.local_lock import answered_here
from perfsuite.measure.bundle.compilers import suitable_compiler
from perfsuite.measure.bundle.making import BundleOrder, make_bundle
from perfsuite.measure.bundle.targets import target_of
from perfsuite.records.bundle import check_bundle
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_bytes


def set_up(options: argparse.Namespace) -> int:
    """Get a device ready to be measured, by a bundle, or remove what that left."""
    profile = find_profile(options.device, asked="")
    if profile.reach.way == "local":
        raise DeviceError(f"{profile.name}: is this machine, where the suite is installed; there is nothing to set up")
    if options.bundle is not None and not options.remove:
        check_bundle(options.bundle)  # before the device is reached
    return _remove(options, profile) if options.remove else _set_up(options, profile)


def _remove(options: argparse.Namespace, profile: Profile) -> int:
    with closing(open_target(profile.reach)) as target:
        _, home = look_at_board(target, profile.reach.home)
        remove_all(target, profile.name, home)
    plain = {"device": profile.name, "home": home}
    return give(Answer(parts=[f"{profile.name}: nothing of setup is left in {home}"], plain=plain), options)


def _set_up(options: argparse.Namespace, profile: Profile) -> int:
    name = profile.name
    with closing(open_target(profile.reach)) as target, progress(f"setup of {name}", options) as tell:
        tell.step(f"looking at {target.text}")
        board, home = look_at_board(target, profile.reach.home)
        folder = options.bundle or _made_bundle(options, profile, board, tell)
        done = set_up_bundle(target, name, home, board, folder, tell)
    sent = f"{done.n_sent} files sent, {format_bytes(done.sent_bytes)}"
    lines = (
        f"{name}: bundle {done.digest} {f'is in use now: {sent}' if done.is_new else 'is there already'}",
        f"next: perfsuite devices doctor {name}, then pytest --device={name}",
    )
    plain = {"device": name, **fields_of(done, "digest", "is_new", "n_sent", "sent_bytes")}
    return give(Answer(parts=lines, plain=plain), options)


def _made_bundle(options: argparse.Namespace, profile: Profile, board: BoardSurvey, tell: Progress) -> Path:
    why = _why_opencl(options, profile, board)
    with_it = f"the bundle is with llama.cpp's OpenCL backend, {why}"
    tell.remark(f"{profile.name}: {with_it if why else 'no OpenCL is there, so the bundle is without its backend'}")
    takes_musl = board.has_musl or board.is_android
    target = target_of(board.machine, has_glibc=not takes_musl)
    best = target.best_processor(board.features)
    order = BundleOrder(
        target=target,
        processor=target.processor(options.processor) if options.processor else best,
        compiler=options.compiler or suitable_compiler(has_musl=takes_musl, glibc=board.glibc),
        llama=options.llama,
        has_opencl=why is not None,
    )
    return make_bundle(order, user_cache(), tell.step).folder


def _why_opencl(options: argparse.Namespace, profile: Profile, board: BoardSurvey) -> str | None:
    if options.opencl:
        return "as --opencl asks"
    if board.opencl_loader is not None:
        return f"for {board.opencl_loader} is there"
    platform = profile.opencl_platform
    return None if platform is None else f"for its profile names the platform {platform}"


def unlock(options: argparse.Namespace) -> int:
    """Say who has a device, or end that run, and restore what a killed one has left."""
    profile = find_profile(options.device, asked="")
    plain = lock_answer(profile, ("break", "--force") if options.force else ("break",))
    text = "nobody has it"
    if plain["lock"] is not None:
        text = f"was held by {LockOwner.from_plain(plain['lock']).text}; ended"
    lines = map(terminal_text, (f"{profile.name}: {text}", *plain["notes"]))
    return give(Answer(parts=lines, plain=plain), options)


def lock_answer(profile: Profile, words: tuple[str, ...]) -> dict[str, Any]:
    """Let the program of the device, or of this machine, answer ``perfsuite-worker lock``.

    Raises LockedError: the device refuses; DeviceError: the suite is not on the device, or answers something else;
    LinkError: the device cannot be reached.
    """
    plain = answered_here(*words) if profile.reach.way == "local" else _asked(profile.name, profile.reach, words)
    if "error" in plain:
        raise LockedError(terminal_text(f"{profile.name}: {plain['error']}"))
    return plain


def _asked(name: str, reach: Reach, words: tuple[str, ...]) -> dict[str, Any]:
    with closing(open_target(reach)) as target:
        completed = target.run(suite_command(reach.home, "lock", *words))
    if completed.status in NO_PROGRAM:
        seen = OLD_SETUP if completed.last_words == OLD_SETUP else "the suite is not on the device"
        raise DeviceError(f"{name}: {seen} ({reach.text}, {reach.home}); run 'perfsuite devices setup {name}'")
    try:
        plain = json.loads(completed.text.strip().rpartition("\n")[2])  # before it a shell may have said something
        if "error" in plain:
            return {"error": str(plain["error"])}
        lock = None if plain["lock"] is None else LockOwner.from_plain(plain["lock"]).to_plain()
        return {"lock": lock, "notes": [str(each) for each in plain["notes"]]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = f"{name}: the suite on the device answers nothing about its lock ({completed.last_words})"
        raise DeviceError(
            terminal_text(f"{text}; run 'perfsuite devices setup {name}', which brings it up to date")
        ) from None
