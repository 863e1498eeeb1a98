"""``perfsuite overhead``: what the recorders cost, in interleaved pairs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.cli.overhead_rows import (
    CONTEXT_RECORDERS,
    DEFAULT_RECORDERS,
    EBPF_PAIRS,
    PROCESS_PAIRS,
    RECORDERS,
    OverheadRow,
    overhead_rows,
)
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.records.events import Phase
from perfsuite.units import format_count, format_ns
from perfsuite.verdict.ebpf_recorders import EBPF_RECORDERS
from perfsuite.verdict.overhead import LEAST_PAIRS
from perfsuite.verdict.recorder_sides import CPU_COMPARISONS, OPENCL_COMPARISONS

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands

#: Fewer pairs have no bound worth telling.
_LEAST_TURN_PAIRS = 20


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "overhead",
        help="measure what the recorders cost, in interleaved pairs",
        description="Recorders of the processor's operators are compared within one process, those of eBPF (as root, "
        "or with the installed helper) turn by turn: 'token' to 'all' say what is recorded, '+perf' that it goes "
        "through the perf buffer instead of the ring buffer. All else is compared in pairs of processes that take "
        "turns: "
        + "; ".join(f"{name} is {each.meaning}" for name, each in {**CPU_COMPARISONS, **OPENCL_COMPARISONS}.items())
        + ".",
    )
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument("--model", default="smollm2-135m-q8_0", metavar="PATH|NAME")
    parser.add_argument("--threads", type=int, help="threads of the engine (default: physical cores)")
    parser.add_argument("--backend", choices=("cpu", "opencl"), default="cpu", help="llama.cpp backend (default cpu)")
    parser.add_argument("--opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")
    parser.add_argument(
        "--recorder",
        action="append",
        metavar="NAME",
        help=f"on cpu {', '.join(RECORDERS['cpu'])} (default: the first three); "
        f"on opencl {', '.join(OPENCL_COMPARISONS)} (default: the first three)",
    )
    parser.add_argument(
        "--pairs",
        type=int,
        metavar="N",
        help=f"pairs (default: within a process 1000 of decode and 400 of prefill, "
        f"with eBPF {EBPF_PAIRS}, else {PROCESS_PAIRS})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_overhead)


def _overhead(options: argparse.Namespace) -> int:
    find_profile(options.device)
    if options.threads is not None and options.threads < 1:
        raise PerfsuiteError(f"--threads={options.threads}: expected 1 or more")
    if options.opencl_platform is not None and options.backend != "opencl":
        raise PerfsuiteError(f"--opencl-platform={options.opencl_platform}: expected --backend opencl beside it")
    recorders = options.recorder or DEFAULT_RECORDERS[options.backend]
    known = RECORDERS[options.backend]
    if unknown := [name for name in recorders if name not in known]:
        raise PerfsuiteError(f"--recorder={unknown[0]}: on the backend {options.backend} there are {', '.join(known)}")
    _check_pairs(options.pairs, recorders)
    rows = [row for recorder in recorders for row in overhead_rows(options, recorder)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return 0
    show(_table(rows))
    for row in rows:
        if row.n_lost and row.phase == Phase.DECODE.value:
            print(f"{row.recorder}: {format_count(row.n_lost, 'event')} found no room, and cost less than it should")
    return 0


def _table(rows: Sequence[OverheadRow]) -> Table:
    """Give probes columns of their own where there are any."""
    has_probes = any(row.hits_per_step is not None for row in rows)
    probes = ("hits a step", "a hit", "probes' load") if has_probes else ()
    table = Table("recorder", "phase", "median", "95 % bounds", "pairs", *probes, box=None, pad_edge=False)
    for row in rows:
        bounds = f"{(row.lower_ratio - 1) * 100:+.2f} to {(row.upper_ratio - 1) * 100:+.2f} %"
        cells = (row.recorder, row.phase, f"{(row.median_ratio - 1) * 100:+.2f} %", bounds, str(row.pairs))
        table.add_row(*cells, *(_probe_cells(row) if has_probes else ()))
    return table


def _probe_cells(row: OverheadRow) -> tuple[str, str, str]:
    hits = "" if row.hits_per_step is None else f"{row.hits_per_step:.0f}"
    cost = "" if row.ns_per_hit is None else format_ns(row.ns_per_hit)
    return hits, cost, "" if row.load_ratio is None else f"{row.load_ratio * 100:.2f} %"


def _check_pairs(n_pairs: int | None, recorders: Sequence[str]) -> None:
    within = [name for name in recorders if name in (*CONTEXT_RECORDERS, *EBPF_RECORDERS)]
    least = _LEAST_TURN_PAIRS if within else LEAST_PAIRS
    if n_pairs is not None and n_pairs < least:
        others = f" of {', '.join(within)} within a process; pairs of processes need {LEAST_PAIRS}" if within else ""
        raise PerfsuiteError(f"--pairs={n_pairs}: expected {least} or more, for a bound at 95 %{others}")
