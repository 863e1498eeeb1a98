"""``perfsuite devices list``, ``show`` and ``remove``: the profiles that there are."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.devices import add_device_argument

if TYPE_CHECKING:
    from perfsuite.device.profile import TheoreticalPeak
    from perfsuite.device.profile.account import ProfileAccount
    from perfsuite.device.profile.file import ProfileFile


def add_parser(commands: Commands) -> None:
    """Add the actions."""
    add_command(
        commands,
        "list",
        summary="list the devices and how each is reached",
        about="Broken profiles are listed with what is wrong.",
        examples={"perfsuite devices list --json": "as JSON"},
    )
    add_command(
        commands,
        "show",
        summary="show a profile, with the file of each value",
        about="Theoretical peaks follow, with their sources.",
        examples={"perfsuite devices show rubikpi": "a board"},
    )
    add_command(
        commands,
        "remove",
        summary="remove a profile of your own",
        about="What was installed on the device stays there, and so do baselines and runs.",
        examples={"perfsuite devices remove desk-pi": "the file goes"},
        writes="removes the profile's file",
    )
    for name, run in (("list", _list), ("show", _show), ("remove", _remove)):
        if name != "list":
            add_device_argument(commands.choices[name])
        add_json(commands.choices[name])
        commands.choices[name].set_defaults(run=run)


def _list(options: argparse.Namespace) -> int:
    from perfsuite.device.profile import profile_names

    devices = [_device(name) for name in profile_names()]
    give(Answer(parts=lambda: [_listing(devices)], plain=lambda: devices), options)
    return 0


def _device(name: str) -> dict[str, Any]:
    """Return a device as JSON has it; what is broken has a complaint."""
    from perfsuite.device.profile import find_profile
    from perfsuite.device.profile.search import profile_files
    from perfsuite.errors import DeviceError

    file = _source(profile_files(name)[0])
    try:
        profile = find_profile(name)
    except DeviceError as error:
        return {"name": name, "kind": None, "reach": None, "description": None, "file": file, "complaint": str(error)}
    told = {"kind": profile.kind, "reach": asdict(profile.reach), "description": profile.description}
    return {"name": name, **told, "file": file, "complaint": None}


def _source(file: ProfileFile) -> str:
    """Return where a file of a profile comes from, in few words: its path, or the suite."""
    return file.where if file.folder is not None else f"the suite ({file.name})"


def _listing(devices: list[dict[str, Any]]) -> Sheet:
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


def _show(options: argparse.Namespace) -> int:
    from perfsuite.device.profile.account import profile_account

    account = profile_account(options.device, asked="")
    give(Answer(parts=lambda: _parts(account), plain=lambda: _plain(account)), options)
    return 0


def _plain(account: ProfileAccount) -> dict[str, Any]:
    return {
        "name": account.profile.name,
        "files": [_source(file) for file in account.files],
        "values": [
            {"key": each.key, "value": each.value, "file": None if each.file is None else _source(each.file)}
            for each in account.values
        ],
        "peaks_file": None if account.peaks_file is None else _source(account.peaks_file),
        "peaks": [asdict(peak) for peak in _peaks(account)],
    }


def _parts(account: ProfileAccount) -> Iterator[Part]:
    from perfsuite.units import format_bytes, format_bytes_per_s, format_flops_per_s

    profile, peaks = account.profile, _peaks(account)
    values = [
        (
            each.key,
            format_bytes(profile.memory_bytes) if each.key == "memory_bytes" else _told(each.value),
            each.file and _source(each.file),
        )
        for each in account.values
    ]
    yield Sheet(("value", profile.name, "from"), values)
    if not peaks or account.peaks_file is None:
        return
    yield f"\ntheoretical peaks, from {_source(account.peaks_file)}:"
    forms = {"bandwidth": format_bytes_per_s}
    yield Sheet(
        ("processor", "of", "at most", "official", "source"),
        [
            (
                *(peak.processor, peak.kind, forms.get(peak.kind, format_flops_per_s)(peak.per_s)),
                *("yes" if peak.official else "no", peak.source),
            )
            for peak in peaks
        ],
    )


def _peaks(account: ProfileAccount) -> tuple[TheoreticalPeak, ...]:
    return (*account.profile.theoretical_peaks, *account.profile.unofficial_peaks)


def _told(value: object) -> str:
    """Return a value for a table; nothing, an empty text and an empty list are a dash."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None or value == "" else str(value)


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
