"""What the eBPF recorder costs a run: by level and buffer, with what the kernel says of its probes' own time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from perfsuite.device.work_folder import work_folder
from perfsuite.experiments.overhead.measurement import ebpf_plan
from perfsuite.experiments.recorder_traces import traced_by_ebpf
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.contention import Contention
from perfsuite.measure.ebpf import required_ebpf
from perfsuite.measure.plan import EbpfOverheadPlan, LlamaPlan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.recording import LOG_NAME
from perfsuite.verdict.significance import PairedRatio, paired_ratio

#: Programs that run whenever any thread of the machine is switched or woken; all others run where a probe is hit.
_SCHEDULER_PROGRAMS = frozenset({"switched", "woken"})

#: Fewer hits of a thread in a step have no cost that could be told from the noise of the step.
_LEAST_HITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EbpfCost:
    """What one choice of levels costs."""

    #: Time with the probes attached over time without, by phase.
    ratios: Mapping[Phase, PairedRatio]
    #: Hits of probes in a decode step, over all threads.
    hits_per_step: float
    #: What a decode step takes longer, over the hits of one thread in it: trap, program and all. None of few hits.
    ns_per_hit: float | None
    #: The programs' own time over the machine's processor time, from the prompt to the last token; None where the
    #: kernel does not tell it.
    load_ratio: float | None
    #: The share of the time in which the threads waited for a processor.
    waiting_ratio: float | None
    n_lost: int


def measure_ebpf_cost(name: str, plan: LlamaPlan, helper: Path, board: Board, *, n_pairs: int) -> EbpfCost:
    """Measure one recorder in `n_pairs` pairs of turns of one process, and its probes in one more.

    Raises `MeasurementError`: a worker failed, or the recorder cannot attach.
    """
    ebpf = ebpf_plan(name, helper, RUN_FOLDER / LOG_NAME)
    traced = replace(plan, recorder="none", n_repetitions=1, ebpf=ebpf)
    payload = board.run(EbpfOverheadPlan(llama=traced, n_pairs=n_pairs))
    sums = {Phase(phase): pairs for phase, pairs in payload["sums_ns"].items()}
    hits_per_step, load_ratio, n_lost = _probes(traced, board)
    added_ns = median(with_probes - plain for plain, with_probes in zip(*sums[Phase.DECODE], strict=True)) / plan.n_gen
    hits_of_one = hits_per_step / plan.n_threads
    return EbpfCost(
        ratios={phase: paired_ratio(plain, with_probes) for phase, (plain, with_probes) in sums.items()},
        hits_per_step=hits_per_step,
        ns_per_hit=added_ns / hits_of_one if hits_of_one >= _LEAST_HITS else None,
        load_ratio=load_ratio,
        waiting_ratio=Contention.from_plain(payload["contention"]).waiting_ratio,
        n_lost=n_lost,
    )


def _probes(plan: LlamaPlan, board: Board) -> tuple[float, float | None, int]:
    """Run once more while the kernel keeps account of the programs, which costs some more than they do alone.

    A prefill hits as often as a decode step: each is one evaluation of a graph of the same operators. Returned are the
    hits of a step, the probes' load, and how many events were lost, as `EbpfCost` has them.
    """
    with work_folder() as folder:
        traced = traced_by_ebpf(plan, replace(required_ebpf(plan), statistics=True), board, folder)
    spans, costs = EngineRecord.from_plain(traced.payload.get("engine")).spans, traced.trace.probe_costs
    steps = [span for span in spans if span.phase in (Phase.PREFILL, Phase.DECODE)]
    elapsed_ns = max(span.end_ns for span in steps) - min(span.start_ns for span in steps)
    run_time_ns = sum(each.run_time_ns for each in costs)
    hits = sum(each.n_runs for each in costs if each.name not in _SCHEDULER_PROGRAMS)
    load_ratio = run_time_ns / (elapsed_ns * board.facts().usable_threads) if run_time_ns else None
    return hits / len(steps), load_ratio, traced.trace.n_lost
