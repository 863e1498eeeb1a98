"""``perfsuite overhead``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.opencl_run import named_weights, opencl_backend_of
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError, meant
from perfsuite.experiments.overhead.measurement import (
    CPU_COMPARISONS,
    EBPF_RECORDERS,
    LEAST_PAIRS,
    OPENCL_COMPARISONS,
    compare_recorders,
)
from perfsuite.experiments.recorder_traces import RECORDERS as ALL_RECORDERS
from perfsuite.measure.contention import Contention
from perfsuite.measure.plan import LlamaPlan, OverheadPlan
from perfsuite.records.events import Phase
from perfsuite.units import format_count, format_ns
from perfsuite.verdict.significance import PairedRatio, paired_ratio
from perfsuite.workload.model_shape import check_generates

if TYPE_CHECKING:
    from perfsuite.cli.progress import Progress
    from perfsuite.measure.board.protocol import Board
    from perfsuite.measure.opencl_backend import OpenClBackend


#: Compared within one process, context by context.
CONTEXT_RECORDERS = tuple(each.name for each in ALL_RECORDERS.values() if each.is_compared)
#: All that there are on a backend, and those that are measured where none is named.
RECORDERS = {"cpu": (*CONTEXT_RECORDERS, *EBPF_RECORDERS, *CPU_COMPARISONS), "opencl": tuple(OPENCL_COMPARISONS)}
DEFAULT_RECORDERS = {"cpu": CONTEXT_RECORDERS, "opencl": tuple(OPENCL_COMPARISONS)[:3]}
#: Pairs of processes.
PROCESS_PAIRS = 12
#: Pairs of turns of one process, with an eBPF recorder's probes and without.
EBPF_PAIRS = 40

#: Pairs by phase: a decode step is an order of magnitude shorter than a prefill.
_OVERHEAD_PAIRS = {Phase.DECODE: 1000, Phase.PREFILL: 400}
#: Where its buffers lie makes a percent of difference to a context, so pairs are spread over fresh processes.
_OVERHEAD_PROCESSES = 4
#: The tokens that a turn generates.
_TURN_GEN = 24
#: The same, and the prompt, of a turn with or without an eBPF recorder's probes: a decode is what they slow down.
_EBPF_GEN, _EBPF_PROMPT = 48, 32
#: The prompt of a turn where OpenCL runs on a processor, which takes seconds for the usual one.
_PROCESSOR_PROMPT = 32


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
    waiting_ratio: float | None = None
    #: Of an eBPF recorder: hits of probes in a step, what the step takes longer for each of a thread's hits, and the
    #: probes' own share of the machine's processor time.
    hits_per_step: float | None = None
    ns_per_hit: float | None = None
    load_ratio: float | None = None
    #: Of an eBPF recorder: events that found no room while its probes were counted.
    n_lost: int | None = None


def overhead_rows(options: argparse.Namespace, recorder: str, board: Board, told: Progress) -> list[OverheadRow]:
    """Measure one recorder as the options say, and tell how far it is."""
    if recorder in EBPF_RECORDERS:
        return _ebpf_rows(options, recorder, board, told)
    if recorder in CONTEXT_RECORDERS:
        return [_overhead_row(options, recorder, phase, board, told) for phase in (Phase.DECODE, Phase.PREFILL)]
    comparison = {**CPU_COMPARISONS, **OPENCL_COMPARISONS}[recorder]
    opencl = opencl_backend_of(options, board)
    found = compare_recorders(
        comparison,
        _process_plan(options, board, opencl),
        find_profile(options.device),
        board,
        opencl=opencl,
        n_pairs=options.pairs or PROCESS_PAIRS,
        announce=lambda n_pairs: told.step(f"{recorder}, {n_pairs} pairs"),
    )
    return [_row(recorder, phase, ratio) for phase, ratio in found.ratios.items()]


def _ebpf_rows(options: argparse.Namespace, recorder: str, board: Board, told: Progress) -> list[OverheadRow]:
    from perfsuite.experiments.overhead.ebpf_cost import measure_ebpf_cost  # NumPy, which no other recorder needs

    helper, n_pairs = board.instruments.ebpf_helper(), options.pairs or EBPF_PAIRS
    plan = replace(_overhead_plan(options, board, "none"), n_gen=_EBPF_GEN, n_prompt=_EBPF_PROMPT)
    told.step(f"{recorder}, {n_pairs} pairs")
    cost = measure_ebpf_cost(recorder, plan, helper, board, n_pairs=n_pairs)
    figures = fields_of(cost, "waiting_ratio", "hits_per_step", "load_ratio", "n_lost")
    return [
        _row(recorder, phase, ratio, ns_per_hit=cost.ns_per_hit if phase is Phase.DECODE else None, **figures)
        for phase, ratio in cost.ratios.items()
    ]


def _row(recorder: str, phase: Phase, ratio: PairedRatio, **figures: Any) -> OverheadRow:
    bounds = fields_of(ratio, "median_ratio", "lower_ratio", "upper_ratio")
    return OverheadRow(recorder=recorder, phase=phase.value, pairs=ratio.n_pairs, **bounds, **figures)


def _process_plan(options: argparse.Namespace, board: Board, opencl: OpenClBackend | None) -> LlamaPlan:
    """Return the work of one turn: on OpenCL without flash attention, which a processor compiles in each process."""
    plan = replace(_overhead_plan(options, board, "none"), n_gen=_TURN_GEN)
    if opencl is None:
        return plan
    return replace(
        plan,
        backend_library=str(opencl.library) if opencl.library else None,
        n_gpu_layers=999,
        flash_attn=not opencl.device.is_cpu,
        n_prompt=_PROCESSOR_PROMPT if opencl.device.is_cpu else plan.n_prompt,
        binds_threads=False,  # as in `llama_plan`
    )


def _overhead_row(
    options: argparse.Namespace, recorder: str, phase: Phase, board: Board, told: Progress
) -> OverheadRow:
    n_pairs = -(-(options.pairs or _OVERHEAD_PAIRS[phase]) // _OVERHEAD_PROCESSES)
    plan = OverheadPlan(llama=_overhead_plan(options, board, recorder), phase=phase.value, n_pairs=n_pairs)
    payloads = []
    for at in range(_OVERHEAD_PROCESSES):
        told.step(f"{recorder}, {phase.value}, processes of {n_pairs} pairs", at, _OVERHEAD_PROCESSES)
        payloads.append(board.run(plan))
    sides = ([ns for payload in payloads for ns in payload[side]] for side in ("plain_ns", "recorded_ns"))
    waiting = [Contention.from_plain(payload["contention"]).waiting_ratio for payload in payloads]
    worst = max((each for each in waiting if each is not None), default=None)
    return _row(recorder, phase, paired_ratio(*sides), waiting_ratio=worst)


def _overhead_plan(options: argparse.Namespace, board: Board, recorder: str) -> LlamaPlan:
    facts, weights = board.facts(), named_weights(options)
    return LlamaPlan(
        gguf_path=str(board.place_weights(weights)),
        library_dir=str(facts.engine.library_dir),
        engine_build_id=facts.engine.build_id,
        cache_dir=str(facts.cache_dir),
        n_threads=options.threads or facts.default_threads,
        n_prompt=64,
        n_gen=128,
        recorder=recorder,
    )


#: Fewer pairs have no bound worth telling.
_LEAST_TURN_PAIRS = 20

_ABOUT = """
Shows the ratio of a phase's time with the recorder to its time without, with bounds (95 %), from pairs that take turns.
"""

_EXAMPLES = {
    "perfsuite overhead --recorder=preload --pairs=200": "one recorder, in a minute",
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
    cpu = [name for name in RECORDERS["cpu"] if not name.startswith("ebpf")]
    text = (
        f"repeatable; cpu: {', '.join(cpu)}, ebpf-LEVEL, ebpf-LEVEL+perf; opencl: {', '.join(OPENCL_COMPARISONS)} "
        "(default: the first three)"
    )
    effort.add_argument("--recorder", action="append", metavar="NAME", help=text)
    text = (
        f"pairs (default 1000 of decode and 400 of prefill; eBPF {EBPF_PAIRS}, other processes {PROCESS_PAIRS}), at "
        f"least {_LEAST_TURN_PAIRS}; of other processes {LEAST_PAIRS}"
    )
    effort.add_argument("--pairs", type=int, metavar="N", help=text)
    add_answer(parser)
    parser.set_defaults(run=_overhead)


def _overhead(options: argparse.Namespace) -> int:
    profile = find_profile(options.device)
    check_least(options, "threads")
    if options.opencl_platform is not None and options.backend != "opencl":
        raise PerfsuiteError(f"--opencl-platform={options.opencl_platform}: expected --backend opencl beside it")
    recorders = options.recorder or DEFAULT_RECORDERS[options.backend]
    known = RECORDERS[options.backend]
    if unknown := [name for name in recorders if name not in known]:
        accepted = f"{', '.join(known)}{meant(unknown[0], known)}"
        raise PerfsuiteError(f"--recorder={unknown[0]}: on the backend {options.backend} there are {accepted}")
    _check_pairs(options.pairs, recorders)
    check_generates(named_weights(options).shape, f"--model={options.model}")
    with taken_device(profile, "overhead", options) as taken, progress("overhead", options) as told:
        rows = [row for recorder in recorders for row in overhead_rows(options, recorder, taken.board, told)]
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
