"""``perfsuite devices doctor``: what keeps a device from good measurements, and how each of it is mended."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.command_help import add_action
from perfsuite.cli.devices_options import add_device_argument, chosen_profile

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands
    from perfsuite.device.doctor.finding import Finding
    from perfsuite.device.profile import Profile

_ABOUT = """
Each line is one thing: whether it is in order (ok), makes measurements worse (warn) or impossible (fail), what was
seen, and how it is mended. Looked at are: whether the device can be reached, the suite there and its llama.cpp, who
has the device, leftovers of a killed run, disk and memory for the default model, governors and who may set them,
clocks, temperature, throttling, battery, swap, what else runs, the hypervisor, the clock of the day, OpenCL, eBPF.

Nothing is changed there. Load is what one second shows. While somebody measures there, OpenCL and eBPF are not looked
at, since asking them starts programs.
"""

_EXAMPLES = {
    "perfsuite devices doctor rubikpi": "before the first run, and when results are noisy",
    "perfsuite devices doctor host --json": "this machine, for a program",
}

_EXITS = {0: "nothing fails; there may be warnings", 1: "something fails"}


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_action(
        commands,
        "doctor",
        summary="say what keeps a device from good measurements, and how to mend it",
        about=_ABOUT,
        examples=_EXAMPLES,
        exits=_EXITS,
    )
    add_device_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from perfsuite.device.doctor.finding import Grade

    profile = chosen_profile(options)
    findings = examine_device(profile)
    if options.json:
        _print_json(findings)
    else:
        _show(profile.name, findings)
    return 1 if any(each.grade is Grade.FAIL for each in findings) else 0


def examine_device(profile: Profile) -> tuple[Finding, ...]:
    """Ask a device, and return what was found."""
    from perfsuite.cli.devices_installed import own_account
    from perfsuite.device.doctor.examination import examine
    from perfsuite.device.doctor.gathering import gather, python_words
    from perfsuite.device.setup.installed import read_installed
    from perfsuite.device.target.opening import open_target

    python = python_words(profile, Path(sys.executable))
    here = read_installed(own_account())
    target = open_target(profile.reach)
    try:
        return examine(gather(target, profile, python, here=here, model_bytes=_model_bytes(profile)))
    finally:
        target.close()


def _model_bytes(profile: Profile) -> int | None:
    """Return the size of the default model's weights; None where the catalogue does not have it."""
    from perfsuite.errors import PerfsuiteError
    from perfsuite.workload.ggml_types import GGML_TYPES
    from perfsuite.workload.tensors import tensor_specs
    from perfsuite.workload.weights import resolve

    if profile.default_model is None:
        return None
    with suppress(PerfsuiteError):
        weights = resolve(profile.default_model, cache_dir=Path())
        specs = tensor_specs(weights.architecture)
        return sum(each.n_rows * GGML_TYPES[weights.tensor_types[each.name]].row_bytes(each.ne[0]) for each in specs)
    return None


def _print_json(findings: Sequence[Finding]) -> None:
    import json
    from dataclasses import asdict

    print(json.dumps([{**asdict(each), "grade": each.grade.value} for each in findings], indent=2))


def _show(device: str, findings: Sequence[Finding]) -> None:
    """Print a line for each, and how many of which there are."""
    from rich.markup import escape
    from rich.table import Column, Table
    from rich.text import Text

    from perfsuite.cli.commands import show
    from perfsuite.device.doctor.finding import Grade

    styles = {Grade.OK: "green", Grade.WARN: "yellow", Grade.FAIL: "red"}
    names = ("", escape(device), "seen", "mend")
    table = Table(*(Column(name, overflow="fold") for name in names), box=None, pad_edge=False)
    for each in findings:
        cells = (each.grade.value, each.what, each.seen, each.mend)  # as text: [reach] is no markup
        table.add_row(*map(Text, cells), style=styles[each.grade])
    show(table)
    counts = {grade: sum(each.grade is grade for each in findings) for grade in Grade}
    print(f"{device}: {counts[Grade.FAIL]} fail, {counts[Grade.WARN]} warn, {counts[Grade.OK]} ok")
