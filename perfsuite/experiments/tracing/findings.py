"""What a trace says of the cases that are judged by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.records.engine_trace import EngineTrace, Ints
from perfsuite.records.events import Phase
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse
from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable, operator_runs, operator_table
from perfsuite.trace.statistics.thread_balance import RoleBalance, least_thread_time, role_balances
from perfsuite.trace.statistics.token_statistics import Steps, is_attention, role_times, steps_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFindings:
    """One traced run of a workload."""

    workload: LlamaWorkload
    n_threads: int
    #: Why nothing is to be told from it, such as competition for the processors; None where there is no such thing.
    complaint: str | None
    has_ends: bool
    #: What an operator takes on a thread that has next to nothing to do, ns.
    least_thread_ns: int
    #: By phase and role.
    balances: Mapping[tuple[Phase, str], RoleBalance]
    #: Of each step of decoding: positions in use, and the time of attention, all layers together, ns.
    contexts: tuple[int, ...]
    attention_ns: tuple[int, ...]
    #: Median time of each operator of a step of decoding, ns, by role and layer.
    decode_ns: Mapping[tuple[str, int | None], float]
    #: The steps of the longest unbroken stretch of decoding, and the experts in it.
    n_stretch_steps: int
    layers: tuple[LayerReuse, ...]


def trace_findings(
    trace: EngineTrace, workload: LlamaWorkload, *, n_threads: int, complaint: str | None = None
) -> TraceFindings:
    """Gather what is judged from a trace of one process, disturbed where there is a complaint.

    The trace has operators; balance needs their ends, too, and the reuse of experts the routers' choices.
    """
    runs, table = operator_runs(trace), operator_table(trace)
    steps = steps_of(trace, runs, table)
    stretch = _longest_stretch(steps.number[steps.is_decode])
    return TraceFindings(
        workload=workload,
        n_threads=n_threads,
        complaint=complaint or _incomplete(trace),
        has_ends=bool(runs.has_ends.any()),
        least_thread_ns=least_thread_time(runs),
        balances={(each.phase, each.role): each for each in role_balances(runs, table)},
        contexts=tuple(steps.context[steps.is_decode].tolist()),
        attention_ns=_attention_ns(steps, runs, table),
        decode_ns=_decode_ns(runs, table),
        n_stretch_steps=int(stretch.size),
        layers=expert_reuse(trace.experts[np.isin(trace.experts["iteration"], stretch)], trace.n_experts),
    )


def _incomplete(trace: EngineTrace) -> str | None:
    if trace.n_lost:
        return f"{trace.n_lost} events of the trace were lost"
    return f"the trace breaks off: {trace.cut}" if trace.cut else None


def _attention_ns(steps: Steps, runs: OperatorRuns, table: OperatorTable) -> tuple[int, ...]:
    pairs, times_ns = role_times(steps, runs, table)
    wanted = [at for at, pair in enumerate(pairs) if is_attention(*pair)]
    found: list[int] = times_ns[wanted].sum(axis=0).tolist()
    return tuple(found)


def _decode_ns(runs: OperatorRuns, table: OperatorTable) -> dict[tuple[str, int | None], float]:
    labels, of_run = table.labelled(runs, lambda operator, phase: (phase, operator.role, operator.layer))
    order = np.argsort(of_run, kind="stable")
    ends = np.cumsum(np.bincount(of_run, minlength=len(labels)))
    parts = np.split(runs.duration_ns[order], ends[:-1]) if labels else []
    return {
        (role, layer): float(np.median(part))
        for (phase, role, layer), part in zip(labels, parts, strict=True)
        if phase is Phase.DECODE
    }


def _longest_stretch(numbers: Ints) -> Ints:
    """Return the most steps that follow each other."""
    found: Iterable[int] = numbers.tolist()
    breaks = [at for at, (one, other) in enumerate(pairwise(found), start=1) if other != one + 1]
    return max(np.split(numbers, breaks), key=len)
