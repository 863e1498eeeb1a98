"""The suite's own OpenCL kernels against kernel duplication: each alone, and again followed by n of itself.

Two readings of the events are compared with the ground truth G, for G is one launch more in all that it costs, its
dispatch included. On Intel's CPU runtime END - START is 1 to 4 µs below G for all 30 kernels of the catalogue but one,
and as much for one of 40 µs as for one of 1 ms: the dispatch of the next launch, which begins after END. Time between
ENDs (occupied) has part of that in it and lay closer to G for every kernel: it is the latency in the sense of
duplication. Judged is END - START nevertheless, for it is what the suite shows as a kernel's time, and the worse of
the two.

The base run is one launch after the device was idle, so that it may find its caches cold; that is why the launches of
the duplicated run are compared with G, and not the base run's own. How many duplicates there are is decided here, from
a process of its own that launches each kernel a few times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from perfsuite.measure.kernel_references import TOLERANCES
from perfsuite.measure.launches.session import LaunchSession, own_source, standard_kernels
from perfsuite.measure.plan import DuplicationPlan
from perfsuite.records.duplication import DuplicationRound, KernelDuplication, duplicates_wanted, duplicates_within
from perfsuite.workload.kernel_catalog import KernelCase

#: Launches that say how long a kernel takes, after as many that warm it up.
_N_PILOT = 10


def duplicated_kernels(plan: DuplicationPlan, session: LaunchSession) -> dict[str, Any]:
    """Return the payload of a `DuplicationPlan`."""
    cases = standard_kernels(plan.case_ids)
    lengths_ns = _lengths_ns(cases, plan.seed, session)
    n_duplicates = [duplicates_within(each, plan.n_rounds, plan.budget_ns) for each in lengths_ns]
    writer = session.writer(plan.seed)
    launches = [writer.launch(case, own_source) for case in cases]
    rounds: list[list[tuple[int, int]]] = [[] for _ in cases]
    for _ in range(plan.n_rounds):
        for launch, n, steps in zip(launches, n_duplicates, rounds, strict=True):
            writer.burst(launch, 2)  # brings the buffers back into the caches, which other kernels have used since
            steps.append((writer.burst(launch, 1), writer.burst(launch, 1 + n)))
    outputs = [writer.output(case, launch) for case, launch in zip(cases, launches, strict=True)]
    told = session.launched(writer)
    found = [
        KernelDuplication(
            name=case.case_id,
            n_duplicates=n,
            n_wanted=duplicates_wanted(length_ns),
            rounds=tuple(_round(told["steps"][base], told["steps"][duplicated]) for base, duplicated in steps),
            problem=_problem(case, session.outputs.deviation(case, plan.seed, told["steps"][output])),
        )
        for case, length_ns, n, steps, output in zip(cases, lengths_ns, n_duplicates, rounds, outputs, strict=True)
    ]
    beside = {name: told[name] for name in told if name not in ("steps", "peak_rss_bytes")}
    return {"kernels": [each.to_plain() for each in found], **beside}


def _lengths_ns(cases: Sequence[KernelCase], seed: int, session: LaunchSession) -> list[float]:
    writer, bursts = session.writer(seed), []
    for case in cases:
        launch = writer.launch(case, own_source)
        writer.burst(launch, _N_PILOT)  # the warm-up
        bursts.append(writer.burst(launch, _N_PILOT))
    told = session.launched(writer)
    return [median(_executions_ns(told["steps"][each])) for each in bursts]


def _executions_ns(told: Mapping[str, Any]) -> list[int]:
    return [end - start for start, end in zip(told["start_ns"], told["end_ns"], strict=True)]


def _round(base: Mapping[str, Any], duplicated: Mapping[str, Any]) -> DuplicationRound:
    return DuplicationRound(
        base_ns=base["host_ns"],
        duplicated_ns=duplicated["host_ns"],
        base_execution_ns=_executions_ns(base)[0],
        duplicates_execution_ns=sum(_executions_ns(duplicated)),
        duplicates_occupied_ns=duplicated["end_ns"][-1] - duplicated["end_ns"][0],
    )


def _problem(case: KernelCase, deviation: float) -> str | None:
    """Duplicates read the same inputs and write the same: the output is what one launch computes."""
    return None if deviation <= TOLERANCES[case.type] else f"the kernel computes wrongly: error norm {deviation:.2g}"
