"""``perfsuite devices add``: your own profile, like another one except for how the device is reached."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.device.reach import HOMES, TAKEN

if TYPE_CHECKING:
    from perfsuite.device.profile.file import ProfileFile

_ABOUT = """
Nothing is sent to the device. Without --address, ssh uses the profile's name and adb the only device.
"""

_EXAMPLES = {
    "perfsuite devices add desk-pi --like rubikpi --address user@192.168.1.20": "a board on the desk",
    "perfsuite devices add phone --like pixel8pro --address ssh:u0_a1@phone:8022": "Termux's sshd",
}


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_command(
        commands,
        "add",
        summary="write a profile of your own, based on another one",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="devices/NAME.toml",
    )
    parser.add_argument("name", metavar="NAME", help="name of the new device")
    parser.add_argument(
        "--like", default="generic-ssh", metavar="DEVICE", help="profile to extend (default generic-ssh)"
    )
    _add_reach(parser)
    parser.add_argument("--description", metavar="TEXT", help="what it is, in one line")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="write it into your own folder of profiles")
    place.add_argument("--folder", type=Path, metavar="DIR", help="write it into this folder (default ./devices)")
    parser.add_argument("--force", action="store_true", help="replace a profile of that name")
    add_json(parser)
    parser.set_defaults(run=_add)


def _add_reach(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connection")
    text = f"how to reach it: {TAKEN} (default: as the profile of --like)"
    group.add_argument("--address", metavar="ADDRESS", help=text)
    text = "for ssh (default: OpenSSH's)"
    group.add_argument("--identity-file", type=Path, metavar="FILE", help=f"private key, {text}")
    group.add_argument("--known-hosts-file", type=Path, metavar="FILE", help=f"known hosts, {text}")
    group.add_argument("--home", metavar="PATH", help="folder on the device to install into")


def _add(options: argparse.Namespace) -> int:
    from perfsuite.device.profile.building import built
    from perfsuite.device.profile.layers import layered_from
    from perfsuite.errors import DeviceError
    from perfsuite.records.whole_file import write_whole_bytes

    draft, path = _draft(options)
    profile = built(options.name, layered_from(draft))
    if not options.force and (path.exists() or path.is_symlink()):
        raise DeviceError(f"{path}: is there already; choose another name, or replace it with --force")
    write_whole_bytes(path, draft.draft or b"", DeviceError)
    told = f"{path}: {profile.name}, reached by {profile.reach.text}\n"
    plain = {"name": profile.name, "file": str(path), "reach": asdict(profile.reach)}
    give(Answer(parts=lambda: (told, *_next(profile.name, path)), plain=lambda: plain), options)
    return 0


def _draft(options: argparse.Namespace) -> tuple[ProfileFile, Path]:
    """Return the new file, and where it goes; a name or a key that cannot be is refused."""
    from perfsuite.device.profile.file import ProfileFile
    from perfsuite.device.profile.record import NAME_RULE, is_name
    from perfsuite.device.profile.search import own_folders, user_folder
    from perfsuite.errors import DeviceError

    if not is_name(options.name):
        raise DeviceError(f"NAME {options.name!r}: is no name of a device; expected {NAME_RULE}")
    if options.identity_file is not None and not options.identity_file.expanduser().is_file():
        raise DeviceError(f"--identity-file={options.identity_file}: no such file; 'ssh-keygen' makes a key")
    folder = user_folder() if options.user else options.folder or own_folders()[0]
    path = folder / f"{options.name}.toml"
    text = _text(options).encode()
    return ProfileFile(name=options.name, place=path, where=str(path), folder=folder, draft=text), path


def _text(options: argparse.Namespace) -> str:
    from perfsuite.device.probe.profile_text import toml_value

    reach = {
        **_way_to(options),
        "identity_file": _whole_path(options.identity_file),
        "known_hosts_file": _whole_path(options.known_hosts_file),
    }
    reach["home"] = options.home or HOMES.get(str(reach["way"]))
    said = [f"{key} = {toml_value(value)}" for key, value in reach.items() if value is not None]
    described = [] if options.description is None else [f"description = {toml_value(options.description)}"]
    note = "# This one defines everything else; 'perfsuite devices show' prints it."
    table = ["", "[reach]", *said] if said else []
    return "\n".join([*described, note, f"extends = {toml_value(options.like)}", *table, ""])


def _way_to(options: argparse.Namespace) -> dict[str, str | int | None]:
    """Return way, address, port and rate, which the address names all at once."""
    from perfsuite.device.address import asked_reach

    if options.address is None:
        return {"way": None}
    reach = asked_reach("--address", options.address)
    baud = reach.baud if "," in options.address else None
    return {"way": reach.way, "address": reach.address or None, "port": reach.port, "baud": baud}


def _whole_path(path: Path | None) -> str | None:
    """Return a path as the file has it: from this folder, unless it begins at the home."""
    if path is None:
        return None
    return str(path) if str(path).startswith("~") else str(path.absolute())


def _next(name: str, path: Path) -> Iterator[str]:
    from perfsuite.device.profile.search import own_folders, profile_files

    if path.parent.absolute() not in [folder.absolute() for folder in own_folders()]:
        yield f"profiles are looked for in {' and '.join(map(str, own_folders()))}: put it there to use it"
        return
    if not path.samefile(str((first := profile_files(name)[0]).place)):
        yield f"{first.where} has the same name, and goes before it in this folder\n"
    yield "next, in this order:"
    yield f"  perfsuite devices setup {name}    # sends it what measures there"
    yield f"  perfsuite devices doctor {name}   # says what is missing or unstable"
    yield f"  pytest --device={name}"
