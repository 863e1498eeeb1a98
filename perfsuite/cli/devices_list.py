"""``perfsuite devices list``: the devices that there are profiles of."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from perfsuite.cli.answer import Answer, Sheet, give
from perfsuite.cli.command_help import Commands, add_command, add_json

if TYPE_CHECKING:
    from perfsuite.device.profile.file import ProfileFile

_ABOUT = """
Broken profiles are listed with what is wrong.
"""


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_command(
        commands,
        "list",
        summary="list the devices and how each is reached",
        about=_ABOUT,
        examples={"perfsuite devices list --json": "as JSON"},
    )
    add_json(parser)
    parser.set_defaults(run=list_devices)


def list_devices(options: argparse.Namespace) -> int:
    """Answer with all of them."""
    from perfsuite.device.profile import profile_names

    devices = [_device(name) for name in profile_names()]
    give(Answer(parts=lambda: [_sheet(devices)], plain=lambda: devices), options)
    return 0


def _device(name: str) -> dict[str, Any]:
    """Return a device as JSON has it; what is broken has a complaint."""
    from dataclasses import asdict

    from perfsuite.device.profile import find_profile
    from perfsuite.device.profile.search import profile_files
    from perfsuite.errors import DeviceError

    file = source(profile_files(name)[0])
    try:
        profile = find_profile(name)
    except DeviceError as error:
        return {"name": name, "kind": None, "reach": None, "description": None, "file": file, "complaint": str(error)}
    told = {"kind": profile.kind, "reach": asdict(profile.reach), "description": profile.description}
    return {"name": name, **told, "file": file, "complaint": None}


def source(file: ProfileFile) -> str:
    """Return where a file of a profile comes from, in few words: its path, or the suite."""
    return file.where if file.folder is not None else f"the suite ({file.name})"


def _sheet(devices: list[dict[str, Any]]) -> Sheet:
    from perfsuite.device.reach import Reach

    rows = [
        (
            each["name"],
            each["reach"] and Reach(**each["reach"]).text,
            each["description"] or f"broken: {each['complaint']}",
            each["file"],
        )
        for each in devices
    ]
    return Sheet(("name", "reached by", "what it is", "profile from"), rows)
