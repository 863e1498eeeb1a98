"""``perfsuite overhead``: what the recorders cost, in interleaved pairs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.overhead.command_rows import (
    CONTEXT_RECORDERS,
    DEFAULT_RECORDERS,
    EBPF_PAIRS,
    PROCESS_PAIRS,
    RECORDERS,
    OverheadRow,
    overhead_rows,
)
from perfsuite.experiments.overhead.ebpf_recorders import EBPF_RECORDERS
from perfsuite.experiments.overhead.measurement import LEAST_PAIRS
from perfsuite.experiments.overhead.recorder_sides import CPU_COMPARISONS, OPENCL_COMPARISONS
from perfsuite.records.events import Phase
from perfsuite.units import format_count, format_ns

#: Fewer pairs have no bound worth telling.
_LEAST_TURN_PAIRS = 20


_COMPARED = "\n".join(f"  {name}: {each.meaning}" for name, each in {**CPU_COMPARISONS, **OPENCL_COMPARISONS}.items())

_ABOUT = f"""
What a recorder costs a phase is the ratio of its time with the recorder to that without, in pairs that take turns, with
the bounds of its median at 95 %.

Recorders of the processor's operators are compared within one process; those of eBPF (as root, or with the installed
helper) turn by turn: 'token' to 'all' say what is recorded, '+perf' that it goes through the perf buffer instead of the
ring buffer. All else is compared in pairs of processes that take turns:
{_COMPARED}

It does not say whether what a recorder sees is right: 'perfsuite fidelity' does.
"""

_EXAMPLES = {
    "perfsuite overhead": "the recorders of the processor's operators",
    "perfsuite overhead --recorder=preload --pairs=200 --json": "one of them, in a minute",
    "perfsuite overhead --backend=opencl --recorder=layer": "the tracing layer of OpenCL",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "overhead",
        about=_ABOUT,
        examples=_EXAMPLES,
        see=("docs/tracing.md", "docs/ebpf.md", "docs/opencl-tracing.md"),
    )
    add_subject(parser, "device", "model", "threads", "backend", "opencl-platform")
    effort = effort_group(parser)
    text = (
        f"on cpu {', '.join(RECORDERS['cpu'])} (default: the first three); "
        f"on opencl {', '.join(OPENCL_COMPARISONS)} (default: the first three); may be repeated"
    )
    effort.add_argument("--recorder", action="append", metavar="NAME", help=text)
    text = "pairs (default: within a process 1000 of decode and 400 of prefill, with eBPF "
    effort.add_argument("--pairs", type=int, metavar="N", help=f"{text}{EBPF_PAIRS}, else {PROCESS_PAIRS})")
    add_answer(parser)
    parser.set_defaults(run=_overhead)


def _overhead(options: argparse.Namespace) -> int:
    profile = find_local_profile(options.device)
    check_least(options, "threads")
    if options.opencl_platform is not None and options.backend != "opencl":
        raise PerfsuiteError(f"--opencl-platform={options.opencl_platform}: expected --backend opencl beside it")
    recorders = options.recorder or DEFAULT_RECORDERS[options.backend]
    known = RECORDERS[options.backend]
    if unknown := [name for name in recorders if name not in known]:
        raise PerfsuiteError(f"--recorder={unknown[0]}: on the backend {options.backend} there are {', '.join(known)}")
    _check_pairs(options.pairs, recorders)
    with taken_device(profile, "overhead", options), progress("overhead", options) as told:
        rows = [row for recorder in recorders for row in overhead_rows(options, recorder, told)]
    give(Answer(parts=lambda: _parts(rows), plain=lambda: [asdict(row) for row in rows]), options)
    return 0


def _parts(rows: Sequence[OverheadRow]) -> Iterator[Part]:
    """Give probes columns of their own where there are any."""
    has_probes = any(row.hits_per_step is not None for row in rows)
    probes = ("hits a step", "a hit", "probes' load") if has_probes else ()
    yield Sheet(
        ("recorder", "phase", "median", "95 % bounds", "pairs", *probes),
        [
            (
                *(row.recorder, row.phase, f"{(row.median_ratio - 1) * 100:+.2f} %"),
                *(f"{(row.lower_ratio - 1) * 100:+.2f} to {(row.upper_ratio - 1) * 100:+.2f} %", row.pairs),
                *(_probe_cells(row) if has_probes else ()),
            )
            for row in rows
        ],
    )
    for row in rows:
        if row.n_lost and row.phase == Phase.DECODE.value:
            yield f"{row.recorder}: {format_count(row.n_lost, 'event')} found no room, and cost less than it should"


def _probe_cells(row: OverheadRow) -> tuple[str, str, str]:
    """Leave them empty where nothing is probed."""
    hits = "" if row.hits_per_step is None else f"{row.hits_per_step:.0f}"
    cost = "" if row.ns_per_hit is None else format_ns(row.ns_per_hit)
    return hits, cost, "" if row.load_ratio is None else f"{row.load_ratio * 100:.2f} %"


def _check_pairs(n_pairs: int | None, recorders: Sequence[str]) -> None:
    within = [name for name in recorders if name in (*CONTEXT_RECORDERS, *EBPF_RECORDERS)]
    least = _LEAST_TURN_PAIRS if within else LEAST_PAIRS
    if n_pairs is not None and n_pairs < least:
        others = f" of {', '.join(within)} within a process; pairs of processes need {LEAST_PAIRS}" if within else ""
        raise PerfsuiteError(f"--pairs={n_pairs}: expected {least} or more, for a bound at 95 %{others}")
