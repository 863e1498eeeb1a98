"""``perfsuite devices remove``: remove a profile of your own."""

from __future__ import annotations

import argparse

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.devices import add_device_argument


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_command(
        commands,
        "remove",
        summary="remove a profile of your own",
        about="What was installed on the device stays there, and so do baselines and runs.",
        examples={"perfsuite devices remove desk-pi": "the file goes"},
        writes="removes the profile's file",
    )
    add_device_argument(parser)
    add_json(parser)
    parser.set_defaults(run=_remove)


def _remove(options: argparse.Namespace) -> int:
    from perfsuite.device.profile.record import is_name
    from perfsuite.device.profile.search import own_folders
    from perfsuite.errors import DeviceError

    paths = [path for folder in own_folders() if (path := folder / f"{options.device}.toml").is_file()]
    if not paths or not is_name(options.device):
        told = ", ".join(map(str, own_folders()))
        raise DeviceError(f"{options.device}: no profile of your own has this name; looked in {told}")
    try:
        paths[0].unlink()
    except OSError as error:
        raise DeviceError(f"{paths[0]}: cannot be removed ({error.strerror})") from None
    lines, plain = (f"{paths[0]}: removed",), {"file": str(paths[0])}
    give(Answer(parts=lambda: lines, plain=lambda: plain), options)
    return 0
