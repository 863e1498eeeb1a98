"""``perfsuite devices doctor``: what keeps a device from good measurements, and how to fix it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.devices import add_device_argument, chosen_profile

if TYPE_CHECKING:
    from perfsuite.device.doctor.gathering import Finding
    from perfsuite.device.profile import Profile

_ABOUT = """
Each line is ok, warn or fail, with what was seen and how to fix it. Nothing is changed.
"""

_EXAMPLES = {
    "perfsuite devices doctor rubikpi": "before the first run, and when results are noisy",
    "perfsuite devices doctor host --json": "this machine, for a program",
}

_EXITS = {1: "something fails"}


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_command(
        commands,
        "doctor",
        summary="check what makes measurements on a device noisy or impossible",
        about=_ABOUT,
        examples=_EXAMPLES,
        exits=_EXITS,
    )
    add_device_argument(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from perfsuite.device.doctor.gathering import Grade

    profile = chosen_profile(options)
    findings = examine_device(profile)
    plain = [{**asdict(each), "grade": each.grade.value} for each in findings]
    give(Answer(parts=lambda: _parts(profile.name, findings), plain=lambda: plain), options)
    return 1 if any(each.grade is Grade.FAIL for each in findings) else 0


def examine_device(profile: Profile) -> tuple[Finding, ...]:
    """Ask a device, and return what was found."""
    from perfsuite.cli.own_suite import own_account, own_state
    from perfsuite.device.doctor.examination import examine
    from perfsuite.device.doctor.gathering import gather
    from perfsuite.device.target.opening import open_target

    with closing(open_target(profile.reach)) as target:
        facts = gather(target, profile, here=own_account(), own_state=own_state, model_bytes=_model_bytes(profile))
    return examine(facts)


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


def _parts(device: str, findings: Sequence[Finding]) -> Iterator[Part]:
    """Yield a line for each, and how many of which there are."""
    from perfsuite.device.doctor.gathering import Grade

    styles = {Grade.OK: "green", Grade.WARN: "yellow", Grade.FAIL: "red"}
    rows = [(each.grade.value, each.what, each.seen, each.mend) for each in findings]
    yield Sheet(("", device, "seen", "mend"), rows, styles=[styles[each.grade] for each in findings])
    counts = {grade: sum(each.grade is grade for each in findings) for grade in Grade}
    yield f"{device}: {counts[Grade.FAIL]} fail, {counts[Grade.WARN]} warn, {counts[Grade.OK]} ok"
