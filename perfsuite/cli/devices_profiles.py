"""``perfsuite devices list``, ``show``, ``remove``, ``add`` and ``probe``: the profiles that there are, and new."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.device.address import asked_reach
from perfsuite.device.probe.profile_text import profile_text, toml_value
from perfsuite.device.probe.readings import take_survey
from perfsuite.device.profile import find_profile, profile_names
from perfsuite.device.profile.building import ProfileAccount, built, profile_account
from perfsuite.device.profile.file import ProfileFile
from perfsuite.device.profile.layers import layered_from
from perfsuite.device.profile.record import NAME_RULE, is_name
from perfsuite.device.profile.search import own_folders, profile_files, user_folder
from perfsuite.device.reach import HOMES, Reach
from perfsuite.device.target.opening import open_target
from perfsuite.errors import DeviceError
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.units import format_bytes, format_bytes_per_s, format_flops_per_s


def list_profiles(options: argparse.Namespace) -> int:
    """List the devices."""
    devices = [_device(name) for name in profile_names()]
    rows = [
        (
            each["name"],
            each["reach"] and Reach(**each["reach"]).text,
            each["description"] or f"broken: {each['complaint']}",
            each["file"],
        )
        for each in devices
    ]
    return give(
        Answer(parts=[Sheet(("name", "reached by", "what it is", "profile from"), rows)], plain=devices), options
    )


def _device(name: str) -> dict[str, Any]:
    """Return a device as JSON has it; what is broken has a complaint."""
    told: dict[str, Any] = dict.fromkeys(("kind", "reach", "description"))
    complaint = None
    try:
        profile = find_profile(name)
        told = {"kind": profile.kind, "reach": asdict(profile.reach), "description": profile.description}
    except DeviceError as error:
        complaint = str(error)
    return {"name": name, **told, "file": _source(profile_files(name)[0]), "complaint": complaint}


def _source(file: ProfileFile) -> str:
    """Return where a file of a profile comes from, in few words: its path, or the suite."""
    return file.where if file.folder is not None else f"the suite ({file.name})"


def show_profile(options: argparse.Namespace) -> int:
    """Show what a profile says, and in which file."""
    account = profile_account(options.device, asked="")
    peaks_file = account.peaks_file and _source(account.peaks_file)
    peaks = (*account.profile.theoretical_peaks, *account.profile.unofficial_peaks)
    plain = {
        "name": account.profile.name,
        "files": list(map(_source, account.files)),
        "values": [
            {"key": each.key, "value": each.value, "file": each.file and _source(each.file)} for each in account.values
        ],
        "peaks_file": peaks_file,
        "peaks": list(map(asdict, peaks)),
    }
    parts: list[Part] = [Sheet(("value", account.profile.name, "from"), list(_value_rows(account)))]
    if peaks and peaks_file is not None:
        forms = {"bandwidth": format_bytes_per_s}
        rows = [
            (
                *(peak.processor, peak.kind, forms.get(peak.kind, format_flops_per_s)(peak.per_s)),
                *("yes" if peak.official else "no", peak.source),
            )
            for peak in peaks
        ]
        title = f"\ntheoretical peaks, from {peaks_file}:"
        parts += [title, Sheet(("processor", "of", "at most", "official", "source"), rows)]
    return give(Answer(parts=parts, plain=plain), options)


def _value_rows(account: ProfileAccount) -> Iterator[tuple[object, ...]]:
    """Yield a row a value; nothing, an empty text and an empty list are a dash."""
    for each in account.values:
        told = ", ".join(map(str, each.value)) if isinstance(each.value, tuple) else each.value
        if each.key == "memory_bytes":
            told = format_bytes(account.profile.memory_bytes)
        yield each.key, None if told == "" else told, each.file and _source(each.file)


def remove_profile(options: argparse.Namespace) -> int:
    """Remove a profile of your own."""
    paths = [path for folder in own_folders() if (path := folder / f"{options.device}.toml").is_file()]
    if not paths or not is_name(options.device):
        text = ", ".join(map(str, own_folders()))
        raise DeviceError(f"{options.device}: no profile of your own has this name; looked in {text}")
    try:
        paths[0].unlink()
    except OSError as error:
        raise DeviceError(f"{paths[0]}: cannot be removed ({error.strerror})") from None
    return give(Answer(parts=[f"{paths[0]}: removed"], plain={"file": str(paths[0])}), options)


def add_profile(options: argparse.Namespace) -> int:
    """Write a profile that is like another one, except for how the device is reached."""
    if not is_name(options.name):
        raise DeviceError(f"NAME {options.name!r}: is no name of a device; expected {NAME_RULE}")
    if options.identity_file is not None and not options.identity_file.expanduser().is_file():
        raise DeviceError(f"--identity-file={options.identity_file}: no such file; 'ssh-keygen' makes a key")
    folder = user_folder() if options.user else options.folder or own_folders()[0]
    path = folder / f"{options.name}.toml"
    draft = _extending_text(options).encode()
    profile = built(options.name, layered_from(_draft(options.name, path, draft)))
    if not options.force and (path.exists() or path.is_symlink()):
        raise DeviceError(f"{path}: is there already; choose another name, or replace it with --force")
    write_whole_bytes(path, draft, DeviceError)
    text = f"{path}: {profile.name}, reached by {profile.reach.text}\n"
    plain = {"name": profile.name, "file": str(path), "reach": asdict(profile.reach)}
    return give(Answer(parts=[text, *_next(profile.name, path)], plain=plain), options)


def _draft(name: str, path: Path, draft: bytes) -> ProfileFile:
    return ProfileFile(name=name, place=path, where=str(path), folder=path.parent, draft=draft)


def _extending_text(options: argparse.Namespace) -> str:
    reach: Mapping[str, Any] = {"way": None}
    if options.address is not None:  # which names way, address, port and rate at once
        asked = asked_reach("--address", options.address)
        baud = asked.baud if "," in options.address else None
        reach = {"way": asked.way, "address": asked.address or None, "port": asked.port, "baud": baud}
    reach = {
        **reach,
        "identity_file": _whole_path(options.identity_file),
        "known_hosts_file": _whole_path(options.known_hosts_file),
        "home": options.home or HOMES.get(str(reach["way"])),
    }
    said = [f"{key} = {toml_value(value)}" for key, value in reach.items() if value is not None]
    described = [] if options.description is None else [f"description = {toml_value(options.description)}"]
    note = "# This one defines everything else; 'perfsuite devices show' prints it."
    table = ["", "[reach]", *said] if said else []
    return "\n".join([*described, note, f"extends = {toml_value(options.like)}", *table, ""])


def _whole_path(path: Path | None) -> str | None:
    """Return a path as the file has it: from this folder, unless it begins at the home."""
    return None if path is None else str(path if str(path).startswith("~") else path.absolute())


def _next(name: str, path: Path) -> Iterator[str]:
    if path.parent.absolute() not in [folder.absolute() for folder in own_folders()]:
        yield f"profiles are looked for in {' and '.join(map(str, own_folders()))}: put it there to use it"
        return
    if not path.samefile(str((first := profile_files(name)[0]).place)):
        yield f"{first.where} has the same name, and goes before it in this folder\n"
    yield "next, in this order:"
    yield f"  perfsuite devices setup {name}    # sends it what measures there"
    yield f"  perfsuite devices doctor {name}   # says what is missing or unstable"
    yield f"  pytest --device={name}"


def probe_device(options: argparse.Namespace) -> int:
    """Ask a live device what it is, and write its profile, which is read as every other before."""
    name, reach = options.device, _probed_reach(options)
    if name is not None and not is_name(name):
        raise DeviceError(f"{name}: is no name of a device: {NAME_RULE}")
    if options.output is None and name is None:
        raise DeviceError("name the device, or the file with -o")
    output = options.output or Path("devices") / f"{name}.toml"
    if output.exists() and not options.force:
        raise DeviceError(f"{output}: is there already; --force replaces it, -o FILE writes another one")
    with closing(open_target(reach)) as target:
        readings = take_survey(target)
    draft = profile_text(readings, reach, day=time.strftime("%Y-%m-%d")).encode()
    _draft(output.stem, output, draft).tables()
    write_whole_bytes(output, draft, DeviceError)
    following = "next: move it to devices/NAME.toml, by which --device=NAME finds it"
    if name is not None and output.parent.resolve() in [each.resolve() for each in own_folders()]:
        following = f"next: perfsuite devices setup {name}, then perfsuite devices doctor {name}"
    lines = [f"{output}: written from what {reach.text} said", following]
    return give(Answer(parts=lines, plain={"file": str(output), "reach": asdict(reach)}), options)


def _probed_reach(options: argparse.Namespace) -> Reach:
    """Return the way that was named, or that of the device's profile."""
    if options.address is not None:
        return asked_reach("--address", options.address)
    if options.device is None:
        raise DeviceError("name a device of 'perfsuite devices list', or say --address=ssh:user@host")
    if options.device not in profile_names():
        raise DeviceError(f"{options.device}: is no device yet; say how it is reached: --address=ssh:user@host")
    return find_profile(options.device, asked="").reach
