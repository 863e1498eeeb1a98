"""The cases that are judged by a trace, enumerated without running anything."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.decode_linearity import has_growth, has_line
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.thread_balance import judged_roles
from perfsuite.records.case import Case
from perfsuite.records.events import Phase

#: The kind of the cases, and the first part of their ids.
TRACE = "trace"

#: What is judged: the third part of an id behind the workload's two.
BALANCE = "balance"
ATTENTION_GROWTH = "attention_growth"
DECODE_LINEARITY = "decode_linearity"
EXPERT_REUSE = "expert_reuse"


def trace_cases(workload: LlamaWorkload, n_threads: int) -> Iterator[Case]:
    """Enumerate the cases of a workload: ``trace/<weights>/<scenario>/<what>``, for balance ``/<phase>/<role>`` too.

    The balance of each role that ggml's rules are known for and that is long enough to show, where there are threads to
    share it; the growth of
    attention and the linearity of products, where the scenario decodes; the reuse of experts, where there are any.
    """
    prefix = f"{TRACE}/{workload.prefix}"
    if not workload.has_graph:
        return
    if n_threads > 1:
        for phase in workload.graph_phases():
            for role in judged_roles(workload, phase, n_threads):
                yield Case(case_id=f"{prefix}/{BALANCE}/{phase.value}/{role}", kind=TRACE, phase=phase, role=role)
    for name, is_there in (
        (ATTENTION_GROWTH, has_growth(workload)),
        (DECODE_LINEARITY, has_line(workload)),
        (EXPERT_REUSE, _routes(workload)),
    ):
        if is_there:
            yield Case(case_id=f"{prefix}/{name}", kind=TRACE, phase=Phase.DECODE)


def routed_experts(workload: LlamaWorkload) -> tuple[int, int]:
    """Return the experts of a layer that routes its tokens, and those that a token is routed to; 0 without any."""
    routed = (each for each in workload.graph(Phase.DECODE) if each.op == "MUL_MAT_ID")
    return next(((each.sources[0].ne[2], each.sources[2].ne[0]) for each in routed), (0, 0))


def n_routed_layers(workload: LlamaWorkload) -> int:
    """Return how many layers route their tokens to experts."""
    routed = (each.layer for each in workload.graph(Phase.DECODE) if each.op == "MUL_MAT_ID")
    return len(set(routed))


def _routes(workload: LlamaWorkload) -> bool:
    return workload.scenario.n_gen > 0 and n_routed_layers(workload) > 0
