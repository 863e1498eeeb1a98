"""Which kernels compute which operator: learnt node by node, confirmed group by group, then applied at full speed.

A backend may compute several nodes by one kernel when it sees them together, and does not when each is asked for by
itself. So the graph is run three times. Node by node shows which kernels a node takes alone. At full speed the sequence
of kernels differs where nodes are fused, and those nodes make a group. Group by group, each group waited for by itself,
must give the very sequence of full speed; then every kernel has its group, and the mapping is not a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import GRAPH_PHASES, PROMPT_PHASES, EngineRecord, Node, Phase, Span
from perfsuite.records.opencl_commands import Commands, CommandType, OpenClTrace
from perfsuite.trace.operators import RecordedOperator, timed_operators


def group_operators(graph: Sequence[Node], groups: Sequence[tuple[int, int]]) -> tuple[RecordedOperator | None, ...]:
    """Return the operator of each group of nodes, given by its first node and the one after its last.

    The nodes of a group are one operator, as a fused pair is on the CPU; `None` stands for a group that computes
    nothing: views and similar ones.
    """
    computed = [[node for node in graph[first:last] if node.timed] for first, last in groups]
    numbered = (each for nodes in computed for each in enumerate(nodes))
    fused = [replace(node, fused=position > 0, timed=position == 0) for position, node in numbered]
    operators = iter(timed_operators(fused))
    return tuple(next(operators) if nodes else None for nodes in computed)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSequence:
    """The kernels of one evaluation in the order in which they are enqueued, each with its operator."""

    phase: Phase
    kernels: tuple[str, ...]
    #: By kernel: the role of the operator that it computes.
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMapping:
    """All sequences that a workload has shown."""

    sequences: tuple[KernelSequence, ...]

    def roles_of(self, phase: Phase, kernels: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the roles of an evaluation's kernels; `None` for a sequence that was never learnt."""
        found = (each.roles for each in self.sequences if each.phase is phase and each.kernels == kernels)
        return next(found, None)

    def kernel_roles(self, phase: Phase) -> dict[str, tuple[str, ...]]:
        """Return the kernels of a phase in the order of their first launch, each with the operators that it is of."""
        found: dict[str, dict[str, None]] = {}
        for sequence in self.sequences:
            if sequence.phase is phase:
                for kernel, role in zip(sequence.kernels, sequence.roles, strict=True):
                    found.setdefault(kernel, {})[role] = None
        return {kernel: tuple(roles) for kernel, roles in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One process: what its driver and its recorder saw, and what its OpenCL layer saw."""

    record: EngineRecord
    trace: OpenClTrace
    #: What the plan of the ``groups`` recorder said: of a prompt and of a decode step, by node, whether it ends a
    #: group; every node does where it says nothing.
    group_ends: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


def group_ends(by_node: RecordedRun, full_speed: RecordedRun) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Find the nodes that end a group in every evaluation of a phase, as a plan takes them: 1 where one ends, else 0.

    In the run of the ``groups`` recorder every node was a group; the other, of the same workload, had no recorder.

    Raises MeasurementError: the two runs have not the same evaluations.
    """
    prompt = (_common_ends(by_node, full_speed, phase) for phase in PROMPT_PHASES)
    return next(filter(None, prompt), ()), _common_ends(by_node, full_speed, Phase.DECODE)


def learn_mapping(by_group: RecordedRun, full_speed: RecordedRun) -> KernelMapping:
    """Give each kernel of full speed the operator of its group, and check that both runs launch the same kernels.

    Raises MeasurementError: an evaluation launches other kernels group by group than at full speed: where, and which.
    """
    sequences: dict[tuple[Phase, tuple[str, ...]], KernelSequence] = {}
    for phase in GRAPH_PHASES:
        for number, (found, fast) in enumerate(_paired(by_group, full_speed, phase)):
            kernels = tuple(name for _, name in found.kernels)
            if kernels != fast:
                raise MeasurementError(f"{phase.value} {number}: {_difference(kernels, fast)}")
            if (phase, kernels) not in sequences:
                sequences[phase, kernels] = KernelSequence(phase=phase, kernels=kernels, roles=_roles(found))
    return KernelMapping(sequences=tuple(sequences.values()))


def kernels_in(commands: Commands, span: Span) -> npt.NDArray[np.intp]:
    """Return the positions of the kernels that were enqueued during a span, in the order of their enqueue calls."""
    first, last = np.searchsorted(commands["host_start_ns"], (span.start_ns, span.end_ns))
    found: npt.NDArray[np.intp] = first + np.flatnonzero(commands["type"][first:last] == CommandType.KERNEL)
    return found


def span_kernels(trace: OpenClTrace, span: Span) -> tuple[str, ...]:
    """Return the names of the kernels that were enqueued during a span."""
    return tuple(trace.names[each] for each in trace.commands["name"][kernels_in(trace.commands, span)].tolist())


def phase_spans(record: EngineRecord, phase: Phase) -> tuple[Span, ...]:
    """Return the occurrences of a phase in the order of their start."""
    return tuple(span for span in record.spans if span.phase is phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupedEvaluation:
    """One evaluation of the ``groups`` recorder, and its kernels with the group that each belongs to."""

    graph: tuple[Node, ...]
    #: Position of the last node of each group.
    last_nodes: tuple[int, ...]
    kernels: tuple[tuple[int, str], ...]


def _grouped(run: RecordedRun, span: Span) -> _GroupedEvaluation:
    """Sort the kernels of a span into groups: a group's kernels are enqueued before it is waited for."""
    evaluations = evaluations_of(run.record)
    found = evaluations.within(span.start_ns, span.end_ns)
    where = f"{span.phase.value} at token {span.token}"
    if len(found) != 1:
        raise MeasurementError(f"{where}: {len(found)} graphs recorded, expected 1")
    graph = run.record.graphs[evaluations.graph[found[0]]]
    ends_ns = evaluations.ends_ns[evaluations.ends(found[0])]
    at_ns = run.trace.commands["host_start_ns"][kernels_in(run.trace.commands, span)]
    kernels = tuple(zip(np.searchsorted(ends_ns, at_ns).tolist(), span_kernels(run.trace, span), strict=True))
    if kernels and kernels[-1][0] >= len(ends_ns):
        raise MeasurementError(f"{where}: {kernels[-1][1]} is enqueued after all nodes")
    ends = run.group_ends[span.phase is Phase.DECODE]
    last_nodes = tuple(node for node in range(len(graph)) if node >= len(ends) or ends[node])
    if len(last_nodes) != len(ends_ns):
        raise MeasurementError(f"{where}: {len(ends_ns)} groups recorded, expected {len(last_nodes)}")
    return _GroupedEvaluation(graph=graph, last_nodes=last_nodes, kernels=kernels)


def _paired(
    grouped: RecordedRun, full_speed: RecordedRun, phase: Phase
) -> Iterator[tuple[_GroupedEvaluation, tuple[str, ...]]]:
    """Yield each evaluation of a phase with the kernels that the same one launches at full speed."""
    slow, fast = phase_spans(grouped.record, phase), phase_spans(full_speed.record, phase)
    if len(slow) != len(fast):
        raise MeasurementError(f"{phase.value}: {len(slow)} evaluations recorded, {len(fast)} at full speed")
    for one, other in zip(slow, fast, strict=True):
        yield _grouped(grouped, one), span_kernels(full_speed.trace, other)


def _common_ends(by_node: RecordedRun, full_speed: RecordedRun, phase: Phase) -> tuple[int, ...]:
    ends: tuple[int, ...] = ()
    for found, fast in _paired(by_node, full_speed, phase):
        own = _ends(found.kernels, fast, len(found.graph))
        ends = own if not ends else tuple(one & other for one, other in zip(ends, own, strict=True))
    return ends


def _ends(by_node: Sequence[tuple[int, str]], fast: Sequence[str], n_nodes: int) -> tuple[int, ...]:
    """Mark the ends of groups: every node, but those within a stretch whose kernels differ at full speed."""
    ends = [1] * n_nodes
    matcher = SequenceMatcher(a=[name for _, name in by_node], b=list(fast), autojunk=False)
    for tag, first, last, _, _ in matcher.get_opcodes():
        if tag != "equal" and last > first:
            for node in range(by_node[first][0], by_node[last - 1][0]):
                ends[node] = 0
    return tuple(ends)


def _roles(found: _GroupedEvaluation) -> tuple[str, ...]:
    bounds = pairwise((-1, *found.last_nodes))
    operators = group_operators(found.graph, [(a + 1, b + 1) for a, b in bounds])
    found_roles = tuple(operator.role if operator else "" for operator in operators)
    return tuple(found_roles[group] for group, _ in found.kernels)


def _difference(grouped: tuple[str, ...], fast: tuple[str, ...]) -> str:
    at = next((i for i, (one, other) in enumerate(zip(grouped, fast, strict=False)) if one != other), None)
    if at is None:
        return f"{len(grouped)} kernels group by group, {len(fast)} at full speed"
    return f"kernel {at} is {grouped[at]} group by group, {fast[at]} at full speed"
