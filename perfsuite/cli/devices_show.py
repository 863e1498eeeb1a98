"""``perfsuite devices show``: what a profile says in the end, and where each value comes from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.devices import add_device_argument
from perfsuite.cli.devices_list import source

if TYPE_CHECKING:
    from perfsuite.device.profile import TheoreticalPeak
    from perfsuite.device.profile.account import ProfileAccount

_ABOUT = """
Theoretical peaks follow, with their sources.
"""


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_command(
        commands,
        "show",
        summary="show a profile, with the file of each value",
        about=_ABOUT,
        examples={"perfsuite devices show rubikpi": "a board"},
    )
    add_device_argument(parser)
    add_json(parser)
    parser.set_defaults(run=_show_device)


def _show_device(options: argparse.Namespace) -> int:
    from perfsuite.device.profile.account import profile_account

    account = profile_account(options.device, asked="")
    give(Answer(parts=lambda: _parts(account), plain=lambda: _plain(account)), options)
    return 0


def _plain(account: ProfileAccount) -> dict[str, Any]:
    return {
        "name": account.profile.name,
        "files": [source(file) for file in account.files],
        "values": [
            {"key": each.key, "value": each.value, "file": None if each.file is None else source(each.file)}
            for each in account.values
        ],
        "peaks_file": None if account.peaks_file is None else source(account.peaks_file),
        "peaks": [asdict(peak) for peak in _peaks(account)],
    }


def _parts(account: ProfileAccount) -> Iterator[Part]:
    from perfsuite.units import format_bytes, format_bytes_per_s, format_flops_per_s

    profile, peaks = account.profile, _peaks(account)
    values = [
        (
            each.key,
            format_bytes(profile.memory_bytes) if each.key == "memory_bytes" else _told(each.value),
            each.file and source(each.file),
        )
        for each in account.values
    ]
    yield Sheet(("value", profile.name, "from"), values)
    if not peaks or account.peaks_file is None:
        return
    yield f"\ntheoretical peaks, from {source(account.peaks_file)}:"
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
