"""How evenly the engine's threads should share the roles of a workload, and which of them a run can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from perfsuite.expectation.graph import Batch, Operator
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rules import rule_of
from perfsuite.expectation.thread_rules import BalanceExpectation
from perfsuite.records.events import Phase

#: Fewer runs of a role have no median worth judging.
LEAST_RUNS = 8

#: What moves less than this is done in less than a recorder's own time, on any processor.
_LEAST_MOVED_BYTES = 16 << 10

#: Steps of decoding at which fused attention is looked at.
_MOST_STEPS = 16


def expected_balances(workload: LlamaWorkload, phase: Phase, n_threads: int) -> Mapping[str, BalanceExpectation]:
    """Return the balance of each role of a phase that the rules are known for, all its operators together.

    Operators of one role are weighted alike; fused attention is taken over the steps of decoding, and what a batch
    without outputs leaves empty counts for nothing.
    """
    found: dict[str, list[BalanceExpectation | None]] = {}
    for batch, operators in _graphs(workload, phase):
        for operator in (each for each in operators if each.output.n_elements):
            found.setdefault(operator.role, []).append(operator_balance(operator, n_threads, batch.n_used))
    return MappingProxyType(
        {role: _mean([each for each in each_of if each]) for role, each_of in found.items() if all(each_of)}
    )


def operator_balance(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation | None:
    """Return how evenly threads share an operator over `n_used` cached positions.

    None where no rule is known, and where there is nothing to share.
    """
    rule = rule_of(operator.op).threads
    return rule(operator, n_threads, n_used) if rule and operator.output.n_elements else None


def judged_roles(workload: LlamaWorkload, phase: Phase, n_threads: int) -> Sequence[str]:
    """Return the roles whose balance a run can show: often enough, and long enough for a recorder."""
    graph = workload.graph(phase)
    n_times = workload.scenario.n_gen if phase is Phase.DECODE else 1
    found = []
    for role in expected_balances(workload, phase, n_threads):
        mine = [each for each in graph if each.role == role]
        largest = max(each.cost.moved_bytes for each in mine)
        if len(mine) * n_times >= LEAST_RUNS and largest >= _LEAST_MOVED_BYTES:
            found.append(role)
    return found


def _graphs(workload: LlamaWorkload, phase: Phase) -> Sequence[tuple[Batch, tuple[Operator, ...]]]:
    """Return the evaluations of a prefill, or those of some steps of decoding in which attention alone differs."""
    graph = workload.graph(phase)
    batches = workload.batches(phase)
    if phase is not Phase.DECODE:
        n_each = len(graph) // len(batches)
        return [(batch, graph[at * n_each : (at + 1) * n_each]) for at, batch in enumerate(batches)]
    scenario = workload.scenario
    first, last = scenario.n_depth + scenario.n_prompt + 1, scenario.n_ctx
    steps = range(first, last + 1, max(1, (last + 1 - first) // _MOST_STEPS))
    others = tuple(each for each in graph if each.op != "FLASH_ATTN_EXT")
    attention = tuple(each for each in graph if each.op == "FLASH_ATTN_EXT")[:1]
    return [(batches[0], others), *((replace(batches[0], n_used=n_used), attention) for n_used in steps)]


def _mean(found: Sequence[BalanceExpectation]) -> BalanceExpectation:
    return BalanceExpectation(
        n_threads=found[0].n_threads,
        balance_ratio=sum(each.balance_ratio for each in found) / len(found),
        piece_ratio=max(each.piece_ratio for each in found),
        returns_at_once=all(each.returns_at_once for each in found),
    )
