"""The work of every row that a workload gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from perfsuite.expectation.cases import decode_costs, operator_cases, phase_cases
from perfsuite.expectation.graph import KV_PADDING
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.roofline.point import Work, work_of
from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.records.case import REST_ROLE
from perfsuite.records.events import Phase

#: The phase of each kind of row that is one.
PHASE_KINDS = {RowKind.PREFILL: Phase.PREFILL, RowKind.DECODE: Phase.DECODE}


def row_works(workload: LlamaWorkload) -> dict[tuple[RowKind, str], Work]:
    """Return the work of every row of a workload, by kind and role.

    Decode is the step half way through; a whole run is the prompt and every step with the cache that it has.
    """
    costs = {case.phase: case.costs for case in phase_cases(workload)}
    found = {
        (kind, ""): work_of(costs[phase], counts_activations=False)
        for kind, phase in PHASE_KINDS.items()
        if costs.get(phase)
    }
    if len(found) == len(PHASE_KINDS):
        found[RowKind.WHOLE_RUN, ""] = found[RowKind.PREFILL, ""] + generation_work(workload)
    for case in operator_cases(workload):
        if case.role != REST_ROLE and case.phase is not None:
            role = f"{case.phase.value}/{case.role}"
            found[RowKind.OPERATOR, role] = work_of(case.costs, counts_activations=True)
    return found


def generation_work(workload: LlamaWorkload) -> Work:
    """Return the work of all tokens that a workload generates, each with the cache that it has."""
    first, *others = _steps(workload)
    return sum(others, start=first)


def _steps(workload: LlamaWorkload) -> Iterator[Work]:
    """Yield the work of all steps of the generation; those alike, which padding of the cache makes many, together."""
    scenario = workload.scenario
    start = scenario.n_depth + scenario.n_prompt
    padded = Counter(-(-(start + step) // KV_PADDING) for step in range(1, scenario.n_gen + 1))
    for n_pads, n_steps in padded.items():
        n_used = min(n_pads * KV_PADDING, start + scenario.n_gen)
        yield work_of(decode_costs(workload, n_used), counts_activations=False) * n_steps
