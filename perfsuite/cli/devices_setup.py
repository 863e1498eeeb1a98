"""``perfsuite devices setup``: get a device ready to be measured, by a bundle."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, fields_of, give
from perfsuite.cli.bundle import add_bundle_options
from perfsuite.cli.command_help import Commands, add_command, add_json, add_quiet
from perfsuite.cli.devices import add_device_argument, chosen_profile

if TYPE_CHECKING:
    from perfsuite.cli.progress import Progress
    from perfsuite.device.profile import Profile
    from perfsuite.device.setup.board_survey import BoardSurvey

_ABOUT = """
The device gets a bundle of 10 to 40 MB, compiled here. It needs a POSIX shell with sha256sum, but no Python, compiler
or root. The old bundle stays in use until the new one works.
"""

_EXAMPLES = {
    "perfsuite devices setup rubikpi": "once, and after each update",
    "perfsuite devices setup rubikpi --llama ../llama.cpp": "your checkout",
}


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_command(
        commands,
        "setup",
        summary="install on a device what measures there",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="files below [reach] home on the device",
    )
    add_device_argument(parser)
    group = parser.add_argument_group("the bundle")
    group.add_argument("--bundle", type=Path, metavar="FOLDER", help="send this bundle of 'perfsuite bundle -o'")
    add_bundle_options(group)
    text = "include llama.cpp's OpenCL backend (default: if the device has OpenCL)"
    group.add_argument("--opencl", action="store_true", help=text)
    parser.add_argument("--remove", action="store_true", help="remove all that setup installed there")
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from perfsuite.errors import DeviceError
    from perfsuite.records.bundle import check_bundle

    profile = chosen_profile(options)
    if profile.reach.way == "local":
        raise DeviceError(f"{profile.name}: is this machine, where the suite is installed; there is nothing to set up")
    if options.bundle is not None and not options.remove:
        check_bundle(options.bundle)  # before the device is reached
    return _remove(options, profile) if options.remove else _with_bundle(options, profile)


def _remove(options: argparse.Namespace, profile: Profile) -> int:
    from perfsuite.device.setup.bundle_setup import look_at_board, remove_all
    from perfsuite.device.target.opening import open_target

    with closing(open_target(profile.reach)) as target:
        _, home = look_at_board(target, profile.reach.home)
        remove_all(target, profile.name, home)
    told = f"{profile.name}: nothing of setup is left in {home}"
    give(Answer(parts=lambda: [told], plain=lambda: {"device": profile.name, "home": home}), options)
    return 0


def _with_bundle(options: argparse.Namespace, profile: Profile) -> int:
    from perfsuite.cli.progress import progress
    from perfsuite.device.setup.bundle_setup import look_at_board, set_up_bundle
    from perfsuite.device.target.opening import open_target
    from perfsuite.units import format_bytes

    with closing(open_target(profile.reach)) as target, progress(f"setup of {profile.name}", options) as tell:
        tell.step(f"looking at {target.text}")
        board, home = look_at_board(target, profile.reach.home)
        folder = options.bundle or _made_bundle(options, profile, board, tell)
        done = set_up_bundle(target, profile.name, home, board, folder, tell)
    sent = f"{done.n_sent} files sent, {format_bytes(done.sent_bytes)}"
    told = f"{profile.name}: bundle {done.digest} {f'is in use now: {sent}' if done.is_new else 'is there already'}"
    plain = {"device": profile.name, **fields_of(done, "digest", "is_new", "n_sent", "sent_bytes")}
    give(Answer(parts=lambda: [told, _next(profile.name)], plain=lambda: plain), options)
    return 0


def _next(device: str) -> str:
    return f"next: perfsuite devices doctor {device}, then pytest --device={device}"


def _made_bundle(options: argparse.Namespace, profile: Profile, board: BoardSurvey, tell: Progress) -> Path:
    """Make the bundle that suits a board, or find it in the cache."""
    from perfsuite.cli.kept_folders import user_cache
    from perfsuite.measure.bundle.compilers import suitable_compiler
    from perfsuite.measure.bundle.making import BundleOrder, make_bundle
    from perfsuite.measure.bundle.targets import target_of

    why = _why_opencl(options, profile, board)
    tell.remark(f"{profile.name}: {why or 'no OpenCL is there, so the bundle is without its backend'}")
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
    """Say why a bundle gets llama.cpp's OpenCL backend; None where nothing asks for it."""
    text = "the bundle is with llama.cpp's OpenCL backend"
    if options.opencl:
        return f"{text}, as --opencl asks"
    if board.opencl_loader is not None:
        return f"{text}, for {board.opencl_loader} is there"
    if profile.opencl_platform is not None:
        return f"{text}, for its profile names the platform {profile.opencl_platform}"
    return None
