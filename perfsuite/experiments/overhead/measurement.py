"""What it costs to follow a run: the same work with and without recorders, in processes that take turns."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import cycle
from pathlib import Path
from statistics import median

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.experiments.pairs import engine_record
from perfsuite.measure.board.protocol import Board, Hear
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.live import LIVE_SOCKET, Delivery
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.measure.schedule import Rule, Series, Witness, pairs_of
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.live import LiveToken
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.verdict.significance import PairedRatio, paired_ratio

#: What is compared: the end to end holds what lies between the phases, too.
COST_PHASES = (Phase.PREFILL, Phase.DECODE, Phase.END_TO_END)

#: Fewer pairs have no bound at 95 %.
LEAST_PAIRS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What one side costs over the other."""

    #: Time with the recorder over time without, by phase; 1.009 is 0.9 % more time for the same tokens.
    ratios: Mapping[Phase, PairedRatio]
    #: Pairs of processes that had competition and were left out.
    n_discarded: int


def measure_overhead(
    plans: tuple[LlamaPlan, LlamaPlan],
    profile: Profile,
    board: Board,
    *,
    n_pairs: int,
    environments: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    announce: Callable[[int], None] = lambda _: None,
    order: random.Random | None = None,
    hear: Hear | None = None,
) -> Overhead:
    """Compare the same work without and with a recorder in `n_pairs` pairs of fresh processes.

    Pairs that had competition are taken again.

    A recorder competes with the threads that it follows, and that is what is measured. So only the plain side says
    whether there was any other competition; what a hypervisor took counts on both. `hear` is given the live records of
    a side that offers any.

    Raises `MeasurementError`: as many pairs had competition as were asked for, or a worker failed.
    """
    take = pairs_of(
        board,
        plans,
        order=order or random.Random(),
        leaders=cycle((1, 0)),
        own_environments=environments,
        hear=hear,
    )
    pairs = Series(
        take=take,
        rules=(Rule(profile=profile), Rule(profile=replace(profile, max_waiting_ratio=math.inf))),
        keep=lambda payloads: (engine_record(payloads[0]), engine_record(payloads[1])),
        witness=_Announcer(announce),
    )
    records = pairs.extend(n_pairs)
    n_left_out, n_valid = len(pairs.complaints), len(records)
    if n_valid < LEAST_PAIRS:
        why = pairs.complaints[-1] if pairs.complaints else "no more were asked for"
        raise MeasurementError(
            f"{n_valid} of {n_valid + n_left_out} pairs had no competition, expected {LEAST_PAIRS} or more ({why}); "
            "free the machine and run again"
        )
    return Overhead(ratios=overhead_ratios(records), n_discarded=n_left_out)


@dataclass
class _Announcer(Witness):
    """Says how far the pairs are."""

    announce: Callable[[int], None]

    def before(self, n_valid: int) -> None:
        """Tell how many pairs there are."""
        self.announce(n_valid)


def overhead_ratios(pairs: Sequence[tuple[EngineRecord, EngineRecord]]) -> dict[Phase, PairedRatio]:
    """Return the ratio of each phase over pairs of a plain and a recorded process.

    A process counts with the median over its repetitions; a repetition's decode is the sum of its steps, so that what
    hits only a few of them counts as well.
    """
    ratios = {}
    for phase in COST_PHASES:
        old, new = ([_latency_ns(pair[side], phase) for pair in pairs] for side in (0, 1))
        if min(*old, *new) > 0:
            ratios[phase] = paired_ratio(old, new)
    return ratios


def _latency_ns(record: EngineRecord, phase: Phase) -> int:
    """Return the median over repetitions of what a phase took in each, 0 where it was not run."""
    sums_ns: dict[int, int] = defaultdict(int)
    for span in record.spans:
        if span.phase is phase:
            sums_ns[span.repetition] += span.duration_ns
    return round(median(sums_ns.values())) if sums_ns else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCostRun:
    """What the pairs gave."""

    #: Latency with a subscriber over latency without one.
    overhead: Overhead
    #: Tokens that the subscriber received, those of pairs that were left out included.
    n_tokens: int


def measure_live_cost(
    plan: LlamaPlan,
    *,
    profile: Profile,
    board: Board,
    n_pairs: int,
    consume: Callable[[Delivery], None] = lambda delivery: None,
    announce: Callable[[int], None] = lambda n_pairs: None,
    order: random.Random | None = None,
) -> LiveCostRun:
    """Run `plan` in pairs of fresh processes that take turns, the new side with a subscriber.

    `consume` is what the subscriber does with each record; `announce` is called before each pair.

    Raises `MeasurementError`: a worker failed, competition left too few pairs, or the subscriber received nothing.
    """
    n_tokens = 0

    def count(delivery: Delivery) -> None:
        nonlocal n_tokens
        n_tokens += isinstance(delivery.record, LiveToken)
        consume(delivery)

    overhead = measure_overhead(
        (replace(plan, live_socket=None), replace(plan, live_socket=LIVE_SOCKET)),
        profile,
        board,
        n_pairs=n_pairs,
        announce=announce,
        order=order,
        hear=count,
    )
    if not n_tokens:
        raise MeasurementError("the subscriber received no token, so nothing was delivered that could cost anything")
    return LiveCostRun(overhead=overhead, n_tokens=n_tokens)


_PLAIN = TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR
_STRUCTURE = _PLAIN | TraceLevel.STRUCTURE

#: What each recorder's name stands for; with ``+perf`` behind it the events go through the perf buffer.
EBPF_LEVELS: Mapping[str, TraceLevel] = {
    "ebpf-token": TraceLevel.TOKEN,
    "ebpf-graph": TraceLevel.TOKEN | TraceLevel.GRAPH,
    "ebpf-operator": _PLAIN,
    "ebpf-structure": _STRUCTURE,
    "ebpf-counters": _STRUCTURE | TraceLevel.COUNTERS,
    "ebpf-ends": _STRUCTURE | TraceLevel.ENDS,
    "ebpf-threads": _STRUCTURE | TraceLevel.THREADS,
    "ebpf-experts": _STRUCTURE | TraceLevel.EXPERTS,
    "ebpf-all": ~TraceLevel(0),
}

_PERF = "+perf"

#: All names.
EBPF_RECORDERS = tuple(name + suffix for suffix in ("", _PERF) for name in EBPF_LEVELS)


def ebpf_plan(name: str, helper: Path, log_path: Path) -> EbpfPlan:
    """Return the plan of the recorder of that name, which is one of `EBPF_RECORDERS`."""
    levels = EBPF_LEVELS[name.removesuffix(_PERF)]
    buffer = "perf" if name.endswith(_PERF) else "ring"
    return EbpfPlan(helper=str(helper), log_path=str(log_path), levels=int(levels), buffer=buffer)


class Layer(Enum):
    """What the OpenCL layer does in a process."""

    #: It is not there.
    OFF = "off"
    #: It switches the runtime's profiling on, and nothing else.
    PROFILE = "profile"
    RECORD = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is compared under one name."""

    #: What the name stands for, in words.
    meaning: str
    #: What the OpenCL layer does on either side.
    plain: Layer = Layer.OFF
    recorded: Layer = Layer.OFF
    #: The recorder of the processor's operators on the second side.
    recorder: str = "none"
    #: Whether the second side has a live subscriber.
    is_live: bool = False


#: On the processor; single recorders are compared within one process, which is finer.
CPU_COMPARISONS: Mapping[str, Comparison] = {
    "live": Comparison(meaning="a live subscriber", is_live=True),
    "callback+live": Comparison(meaning="operators, and a live subscriber", recorder="callback", is_live=True),
}

OPENCL_COMPARISONS: Mapping[str, Comparison] = {
    "profiling": Comparison(meaning="the runtime's own profiling", recorded=Layer.PROFILE),
    "layer": Comparison(
        meaning="the layer, beyond the runtime's profiling", plain=Layer.PROFILE, recorded=Layer.RECORD
    ),
    "opencl": Comparison(meaning="the layer and the runtime's profiling", recorded=Layer.RECORD),
    "opencl+live": Comparison(meaning="the same with a live subscriber", recorded=Layer.RECORD, is_live=True),
}


def compare_recorders(
    comparison: Comparison,
    plan: LlamaPlan,
    profile: Profile,
    board: Board,
    *,
    opencl: OpenClBackend | None,
    n_pairs: int,
    announce: Callable[[int], None] = lambda _: None,
) -> Overhead:
    """Measure one comparison; logs and sockets are in the folders of its runs.

    Raises `MeasurementError`: a worker failed, or competition left too few pairs.
    """
    bare = replace(plan, recorder="none", live_socket=None)
    recorded = replace(bare, recorder=comparison.recorder)
    if comparison.is_live:
        recorded = replace(recorded, live_socket=LIVE_SOCKET)
    return measure_overhead(
        (bare, recorded),
        profile,
        board,
        n_pairs=n_pairs,
        environments=(_environment(opencl, comparison.plain), _environment(opencl, comparison.recorded)),
        announce=announce,
        hear=(lambda _: None) if comparison.is_live else None,
    )


def _environment(opencl: OpenClBackend | None, layer: Layer) -> Mapping[str, str]:
    if opencl is None:
        return {}
    return opencl.environment(None if layer is Layer.OFF else RUN_FOLDER, profile_only=layer is Layer.PROFILE)
