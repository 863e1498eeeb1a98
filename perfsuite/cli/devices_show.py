"""``perfsuite devices show``: what a profile says in the end, and where each value comes from."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from perfsuite.cli.command_help import add_action
from perfsuite.cli.devices_list import source
from perfsuite.cli.devices_options import add_device_argument

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands
    from perfsuite.device.profile import TheoreticalPeak
    from perfsuite.device.profile.account import ProfileAccount

_ABOUT = """
Every value as a run takes it, with the file that it is from; what no file says is what the suite takes then. Below
them what data sheets promise, with the source of each figure. One that is not official is nobody's promise: it is not
set beside what is measured.
"""


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_action(
        commands,
        "show",
        summary="show what a profile says, and where each value comes from",
        about=_ABOUT,
        examples={"perfsuite devices show rubikpi": "with the sources of its peaks"},
    )
    add_device_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_show_device)


def _show_device(options: argparse.Namespace) -> int:
    from perfsuite.device.profile.account import profile_account

    account = profile_account(options.device, asked="")
    if options.json:
        import json

        print(json.dumps(_plain(account), indent=1))
    else:
        _show_values(account)
        _show_peaks(account)
    return 0


def _plain(account: ProfileAccount) -> dict[str, Any]:
    from dataclasses import asdict

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


def _show_values(account: ProfileAccount) -> None:
    from rich.markup import escape
    from rich.table import Table

    from perfsuite.cli.commands import show
    from perfsuite.units import format_bytes

    profile = account.profile
    table = Table("value", profile.name, "from", box=None, pad_edge=False)
    for each in account.values:
        value = format_bytes(profile.memory_bytes) if each.key == "memory_bytes" else _told(each.value)
        table.add_row(each.key, escape(value), "-" if each.file is None else escape(source(each.file)))
    show(table)


def _show_peaks(account: ProfileAccount) -> None:
    from rich.markup import escape
    from rich.table import Table

    from perfsuite.cli.commands import show
    from perfsuite.units import format_bytes_per_s, format_flops_per_s

    peaks = _peaks(account)
    if not peaks or account.peaks_file is None:
        return
    print(f"\ntheoretical peaks, from {source(account.peaks_file)}:")
    table = Table("processor", "of", "at most", "official", "source", box=None, pad_edge=False)
    for peak in peaks:
        form = format_bytes_per_s if peak.kind == "bandwidth" else format_flops_per_s
        official = "yes" if peak.official else "no"
        table.add_row(escape(peak.processor), peak.kind, form(peak.per_s), official, escape(peak.source))
    show(table)


def _peaks(account: ProfileAccount) -> tuple[TheoreticalPeak, ...]:
    return (*account.profile.theoretical_peaks, *account.profile.unofficial_peaks)


def _told(value: object) -> str:
    """Return a value for a table; nothing, an empty text and an empty list are a dash."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None or value == "" else str(value)
