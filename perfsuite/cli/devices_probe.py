"""``perfsuite devices probe``: ask a live device what it is, and write its profile."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.device.reach import TAKEN
from perfsuite.errors import DeviceError

if TYPE_CHECKING:
    from perfsuite.device.probe.readings import Readings
    from perfsuite.device.reach import Reach

_ABOUT = """
A shell script reads files there; nothing is written or installed. Comments say where each value is from. A new NAME
needs --address.
"""

_EXAMPLES = {
    "perfsuite devices probe desk-pi --address ssh:user@desk-pi": "a new board",
    "perfsuite devices probe phone --address adb": "the only device of adb",
}


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_command(
        commands,
        "probe",
        summary="read a device's hardware and write its profile",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="devices/NAME.toml",
    )
    parser.add_argument("device", nargs="?", metavar="NAME", help="name of the device")
    text = f"how to reach the device: {TAKEN}"
    parser.add_argument("--address", metavar="ADDRESS", help=f"{text} (default: the profile's)")
    text = "file to write (default devices/NAME.toml)"
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=text)
    parser.add_argument("--force", action="store_true", help="replace the file")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from perfsuite.device.probe.readings import take_survey
    from perfsuite.device.target.opening import open_target
    from perfsuite.records.whole_file import write_whole_bytes

    reach = _reach(options)
    output = _output(options)
    with closing(open_target(reach)) as target:
        readings = take_survey(target)
    write_whole_bytes(output, _checked_content(readings, reach, output), DeviceError)
    told, plain = f"{output}: written from what {reach.text} said", {"file": str(output), "reach": asdict(reach)}
    give(Answer(parts=lambda: [told, _next(options.device, output)], plain=lambda: plain), options)
    return 0


def _reach(options: argparse.Namespace) -> Reach:
    """Return the way that was named, or that of the device's profile."""
    if options.address is not None:
        from perfsuite.device.address import asked_reach

        return asked_reach("--address", options.address)
    if options.device is None:
        raise DeviceError("name a device of 'perfsuite devices list', or say --address=ssh:user@host")
    from perfsuite.cli.devices import chosen_profile
    from perfsuite.device.profile import profile_names

    if options.device not in profile_names():
        raise DeviceError(f"{options.device}: is no device yet; say how it is reached: --address=ssh:user@host")
    return chosen_profile(options).reach


def _output(options: argparse.Namespace) -> Path:
    """Return the file to write; one that is there is refused."""
    from perfsuite.device.profile.record import NAME_RULE, is_name

    if options.device is not None and not is_name(options.device):
        raise DeviceError(f"{options.device}: is no name of a device: {NAME_RULE}")
    if options.output is None and options.device is None:
        raise DeviceError("name the device, or the file with -o")
    output = options.output or Path("devices") / f"{options.device}.toml"
    if output.exists() and not options.force:
        raise DeviceError(f"{output}: is there already; --force replaces it, -o FILE writes another one")
    return Path(output)


def _checked_content(readings: Readings, reach: Reach, output: Path) -> bytes:
    """Return the profile, which is read as every other before it is written."""
    import time

    from perfsuite.device.probe.profile_text import profile_text
    from perfsuite.device.profile.file import ProfileFile

    text = profile_text(readings, reach, day=time.strftime("%Y-%m-%d"))
    draft = text.encode()
    ProfileFile(name=output.stem, place=output, where=str(output), folder=output.parent, draft=draft).tables()
    return draft


def _next(device: str | None, output: Path) -> str:
    from perfsuite.device.profile.search import own_folders

    if device is not None and output.parent.resolve() in [each.resolve() for each in own_folders()]:
        return f"next: perfsuite devices setup {device}, then perfsuite devices doctor {device}"
    return "next: move it to devices/NAME.toml, by which --device=NAME finds it"
