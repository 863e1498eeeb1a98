"""``perfsuite overhead``: what the recorders cost, in interleaved pairs."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.device.profile import find_profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.measure.contention import Contention
from perfsuite.measure.launch import environment_engine, run_worker
from perfsuite.measure.plan import LlamaPlan, OverheadPlan
from perfsuite.records.events import Phase
from perfsuite.units import format_change
from perfsuite.verdict.paired import paired_ratio
from perfsuite.workload.weights import materialize, resolve

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands

#: Pairs by phase: a decode step is an order of magnitude shorter than a prefill.
_OVERHEAD_PAIRS = {Phase.DECODE: 1000, Phase.PREFILL: 400}
#: Where its buffers lie makes a percent of difference to a context, so pairs are spread over fresh processes.
_OVERHEAD_PROCESSES = 4
#: Fewer pairs have no bound worth telling.
_LEAST_PAIRS = 20
_OVERHEAD_RECORDERS = ("callback", "preload", "cb_eval")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadRow:
    """What one recorder costs one phase."""

    recorder: str
    phase: str
    median_ratio: float
    lower_ratio: float
    upper_ratio: float
    pairs: int
    #: Share of thread time spent waiting for a processor while this was measured.
    waiting_ratio: float | None


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("overhead", help="measure what the recorders cost, in interleaved pairs")
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument("--model", default="smollm2-135m-q8_0", metavar="PATH|NAME")
    parser.add_argument("--threads", type=int, help="threads of the engine (default: usable cores)")
    parser.add_argument("--recorder", action="append", choices=_OVERHEAD_RECORDERS, help="default: all of them")
    parser.add_argument("--pairs", type=int, help="pairs for each phase (default 1000 decode, 400 prefill)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_overhead)


def _overhead(options: argparse.Namespace) -> int:
    find_profile(options.device)
    if options.pairs is not None and options.pairs < _LEAST_PAIRS:
        raise PerfsuiteError(f"--pairs={options.pairs}: expected {_LEAST_PAIRS} or more, for a bound at 95 %")
    rows = [
        _overhead_row(options, recorder, phase)
        for recorder in options.recorder or _OVERHEAD_RECORDERS
        for phase in (Phase.DECODE, Phase.PREFILL)
    ]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return 0
    table = Table("recorder", "phase", "median", "95 % bounds", "pairs", box=None, pad_edge=False)
    for row in rows:
        bounds = f"{format_change(row.lower_ratio)} to {format_change(row.upper_ratio)}"
        table.add_row(row.recorder, row.phase, f"{(row.median_ratio - 1) * 100:+.2f} %", bounds, str(row.pairs))
    show(table)
    return 0


def _overhead_row(options: argparse.Namespace, recorder: str, phase: Phase) -> OverheadRow:
    n_pairs = -(-(options.pairs or _OVERHEAD_PAIRS[phase]) // _OVERHEAD_PROCESSES)
    plan = OverheadPlan(llama=_overhead_plan(options, recorder), phase=phase.value, n_pairs=n_pairs)
    payloads = [run_worker(plan) for _ in range(_OVERHEAD_PROCESSES)]
    ratio = paired_ratio(
        *([ns for payload in payloads for ns in payload[side]] for side in ("plain_ns", "recorded_ns"))
    )
    waiting = [Contention.from_plain(payload["contention"]).waiting_ratio for payload in payloads]
    return OverheadRow(
        recorder=recorder,
        phase=phase.value,
        median_ratio=ratio.median_ratio,
        lower_ratio=ratio.lower_ratio,
        upper_ratio=ratio.upper_ratio,
        pairs=ratio.n_pairs,
        waiting_ratio=max((each for each in waiting if each is not None), default=None),
    )


def _overhead_plan(options: argparse.Namespace, recorder: str) -> LlamaPlan:
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite"))
    engine = environment_engine()
    path = materialize(resolve(options.model, cache_dir=cache_dir / "models"), cache_dir=cache_dir / "models")
    return LlamaPlan(
        gguf_path=str(path),
        library_dir=str(engine.library_dir),
        engine_build_id=engine.build_id,
        cache_dir=str(cache_dir),
        n_threads=options.threads or default_threads(),
        n_prompt=64,
        n_gen=128,
        recorder=recorder,
    )
