"""``perfsuite overhead``: what the recorders cost, in interleaved pairs."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.cli.opencl_options import opencl_backend_of
from perfsuite.device.profile import find_profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.measure.contention import Contention
from perfsuite.measure.launch import environment_engine, run_worker
from perfsuite.measure.plan import LlamaPlan, OverheadPlan
from perfsuite.records.events import Phase
from perfsuite.verdict.overhead import LEAST_PAIRS
from perfsuite.verdict.paired import PairedRatio, paired_ratio
from perfsuite.verdict.recorder_sides import CPU_COMPARISONS, OPENCL_COMPARISONS, compare_recorders
from perfsuite.workload.weights import materialize, resolve

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands
    from perfsuite.measure.opencl_backend import OpenClBackend

#: Pairs by phase: a decode step is an order of magnitude shorter than a prefill.
_OVERHEAD_PAIRS = {Phase.DECODE: 1000, Phase.PREFILL: 400}
#: Where its buffers lie makes a percent of difference to a context, so pairs are spread over fresh processes.
_OVERHEAD_PROCESSES = 4
#: Fewer pairs have no bound worth telling.
_LEAST_PAIRS = 20
_OVERHEAD_RECORDERS = ("callback", "preload", "cb_eval")
#: Pairs of processes, and the tokens that each generates in a turn.
_PROCESS_PAIRS = 12
_PROCESS_GEN = 24
#: The prompt of a turn where OpenCL runs on a processor, which takes seconds for the usual one.
_PROCESSOR_PROMPT = 32
_RECORDERS = {"cpu": (*_OVERHEAD_RECORDERS, *CPU_COMPARISONS), "opencl": tuple(OPENCL_COMPARISONS)}
_DEFAULT_RECORDERS = {"cpu": _OVERHEAD_RECORDERS, "opencl": tuple(OPENCL_COMPARISONS)[:3]}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadRow:
    """What one recorder costs one phase."""

    recorder: str
    phase: str
    median_ratio: float
    lower_ratio: float
    upper_ratio: float
    pairs: int
    #: Share of thread time spent waiting for a processor while this was measured; None where pairs of processes that
    #: waited were taken again.
    waiting_ratio: float | None


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "overhead",
        help="measure what the recorders cost, in interleaved pairs",
        description="Single recorders of the processor's operators are compared within one process. All else is "
        "compared in pairs of processes that take turns: "
        + "; ".join(f"{name} is {each.meaning}" for name, each in {**CPU_COMPARISONS, **OPENCL_COMPARISONS}.items())
        + ".",
    )
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument("--model", default="smollm2-135m-q8_0", metavar="PATH|NAME")
    parser.add_argument("--threads", type=int, help="threads of the engine (default: usable cores)")
    parser.add_argument("--backend", choices=("cpu", "opencl"), default="cpu", help="llama.cpp backend (default cpu)")
    parser.add_argument("--opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")
    parser.add_argument(
        "--recorder",
        action="append",
        metavar="NAME",
        help=f"on cpu {', '.join((*_OVERHEAD_RECORDERS, *CPU_COMPARISONS))} (default: the first three); "
        f"on opencl {', '.join(OPENCL_COMPARISONS)} (default: the first three)",
    )
    parser.add_argument(
        "--pairs",
        type=int,
        metavar="N",
        help=f"pairs (default: within a process 1000 of decode and 400 of prefill, else {_PROCESS_PAIRS})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_overhead)


def _overhead(options: argparse.Namespace) -> int:
    find_profile(options.device)
    if options.threads is not None and options.threads < 1:
        raise PerfsuiteError(f"--threads={options.threads}: expected 1 or more")
    if options.opencl_platform is not None and options.backend != "opencl":
        raise PerfsuiteError(f"--opencl-platform={options.opencl_platform}: expected --backend opencl beside it")
    recorders = options.recorder or _DEFAULT_RECORDERS[options.backend]
    known = _RECORDERS[options.backend]
    if unknown := [name for name in recorders if name not in known]:
        raise PerfsuiteError(f"--recorder={unknown[0]}: on the backend {options.backend} there are {', '.join(known)}")
    _check_pairs(options.pairs, recorders)
    rows = [row for recorder in recorders for row in _rows(options, recorder)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return 0
    table = Table("recorder", "phase", "median", "95 % bounds", "pairs", box=None, pad_edge=False)
    for row in rows:
        bounds = f"{(row.lower_ratio - 1) * 100:+.2f} % to {(row.upper_ratio - 1) * 100:+.2f} %"
        table.add_row(row.recorder, row.phase, f"{(row.median_ratio - 1) * 100:+.2f} %", bounds, str(row.pairs))
    show(table)
    return 0


def _check_pairs(n_pairs: int | None, recorders: Sequence[str]) -> None:
    within = [name for name in recorders if name in _OVERHEAD_RECORDERS]
    least = _LEAST_PAIRS if within else LEAST_PAIRS
    if n_pairs is not None and n_pairs < least:
        others = f" of {', '.join(within)} within a process; pairs of processes need {LEAST_PAIRS}" if within else ""
        raise PerfsuiteError(f"--pairs={n_pairs}: expected {least} or more, for a bound at 95 %{others}")


def _rows(options: argparse.Namespace, recorder: str) -> list[OverheadRow]:
    if recorder in _OVERHEAD_RECORDERS:
        return [_overhead_row(options, recorder, phase) for phase in (Phase.DECODE, Phase.PREFILL)]
    comparison = {**CPU_COMPARISONS, **OPENCL_COMPARISONS}[recorder]
    opencl = opencl_backend_of(options)
    with tempfile.TemporaryDirectory(prefix="perfsuite-overhead-") as folder:
        found = compare_recorders(
            comparison,
            _process_plan(options, opencl),
            find_profile(options.device),
            opencl=opencl,
            folder=Path(folder),
            n_pairs=options.pairs or _PROCESS_PAIRS,
            announce=lambda n_pairs: print(f"overhead: {recorder}, {n_pairs} pairs", file=sys.stderr, flush=True),
        )
    return [_process_row(recorder, phase, ratio) for phase, ratio in found.ratios.items()]


def _process_row(recorder: str, phase: Phase, ratio: PairedRatio) -> OverheadRow:
    return OverheadRow(
        recorder=recorder,
        phase=phase.value,
        median_ratio=ratio.median_ratio,
        lower_ratio=ratio.lower_ratio,
        upper_ratio=ratio.upper_ratio,
        pairs=ratio.n_pairs,
        waiting_ratio=None,
    )


def _process_plan(options: argparse.Namespace, opencl: OpenClBackend | None) -> LlamaPlan:
    """Return the work of one turn: on OpenCL without flash attention, which a processor compiles in each process."""
    plan = replace(_overhead_plan(options, "none"), n_gen=_PROCESS_GEN)
    if opencl is None:
        return plan
    library = str(opencl.library) if opencl.library else None
    n_prompt = _PROCESSOR_PROMPT if opencl.device.is_cpu else plan.n_prompt
    return replace(
        plan,
        backend_library=library,
        n_gpu_layers=999,
        flash_attn=not opencl.device.is_cpu,
        n_prompt=n_prompt,
        binds_threads=False,  # as in `llama_plan`
    )


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
