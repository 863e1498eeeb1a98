"""The cases of a run, enumerated from the workload alone, each with what it costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from perfsuite.expectation.graph import Operator
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rules import OPERATORS, rule_of
from perfsuite.records.case import ENGINE_KERNEL, REST_ROLE, Case, CaseCost
from perfsuite.records.events import EMBEDDING_ROLE, PROMPT_PHASES, TOKEN_PHASES, Phase
from perfsuite.records.op_cost import NO_COST, OpCost
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS, KernelCase

#: FLOPs a logit of the native softmax pass: maximum, subtraction, exponential, sum, division.
_SOFTMAX_FLOPS = 5
#: Bytes of a candidate in the sampler's array: id, logit, probability.
_CANDIDATE_BYTES = 12


def decode_costs(workload: LlamaWorkload, n_used: int) -> tuple[CaseCost, ...]:
    """Return the parts of one decode step after which the cache holds so many tokens, the gather left out."""
    graph = tuple(each for each in workload.operators(workload.step(n_used)) if each.role != EMBEDDING_ROLE)
    return _summed(_parts(workload, graph))


def phase_cases(workload: LlamaWorkload) -> Iterator[Case]:
    """Enumerate the phases of a workload, in the order in which they run."""
    costs = _phase_costs(workload)
    for phase, parts in costs.items():
        yield Case(case_id=f"phase/{workload.prefix}/{phase.value}", kind="phase", costs=parts, phase=phase)


def operator_cases(workload: LlamaWorkload) -> Iterator[Case]:
    """Enumerate the roles of each phase's graph; layers are summed, and the rest of the phase is a case too."""
    for phase in workload.known_phases:
        prefix = f"operator/{workload.prefix}/{phase.value}"
        for role, costs in _role_costs(workload, phase).items():
            yield Case(case_id=f"{prefix}/{role}", kind="operator", costs=_summed(costs), phase=phase, role=role)
        yield Case(case_id=f"{prefix}/{REST_ROLE}", kind="operator", phase=phase, role=REST_ROLE)


def recorded_operator_cases(workload: LlamaWorkload, case_ids: Iterable[str]) -> Iterator[Case]:
    """Make cases of a workload's operators that are known by having been recorded: of those among the ids."""
    for phase in workload.recorded_phases:
        prefix = f"operator/{workload.prefix}/{phase.value}/"
        for case_id in case_ids:
            if case_id.startswith(prefix):
                yield Case(case_id=case_id, kind="operator", phase=phase, role=case_id.removeprefix(prefix))


def kernel_cases() -> Iterator[Case]:
    """Enumerate the standard OpenCL kernels."""
    for kernel in STANDARD_KERNELS:
        yield Case(case_id=kernel.case_id, kind="kernel", costs=(_kernel_cost(kernel),), role=kernel.name)


def engine_kernel_cases(
    workload: LlamaWorkload, kernel_roles: Mapping[Phase, Mapping[str, Sequence[str]]]
) -> Iterator[Case]:
    """Enumerate the engine's own kernels of each phase, all launches of one occurrence of it summed.

    `kernel_roles` gives, by phase and kernel, the operators that the kernel is of. A kernel costs what its operators
    cost where no other kernel has a part in them; else its cost is not known.
    """
    for phase in workload.graph_phases():
        kernels = kernel_roles.get(phase, {})
        roles = [role for found in kernels.values() for role in found]
        shared = {role for role in roles if roles.count(role) > 1}
        costs = _role_costs(workload, phase)
        for kernel, found in kernels.items():
            own = () if shared & set(found) else tuple(part for role in found for part in costs.get(role, ()))
            case_id = f"kernel/{workload.prefix}/{phase.value}/{kernel}"
            yield Case(case_id=case_id, kind=ENGINE_KERNEL, costs=_summed(own), phase=phase, role=kernel)


def _role_costs(workload: LlamaWorkload, phase: Phase) -> dict[str, tuple[CaseCost, ...]]:
    if phase not in workload.known_phases:
        return {}
    graph = workload.graph(phase)
    if phase is Phase.ENCODE_IMAGE:
        parts = _parts(workload, graph, n_layers=len({operator.layer for operator in graph} - {None}))
    else:
        parts = _parts(workload, graph, n_evaluations=len(workload.batches(phase)))
    costs: dict[str, list[CaseCost]] = defaultdict(list)
    for part, operator in zip(parts, graph, strict=True):
        costs[operator.role].append(part)
    unknown = {operator.role for operator in graph if operator.op not in OPERATORS}
    return {role: () if role in unknown else tuple(found) for role, found in costs.items()}


def _phase_costs(workload: LlamaWorkload) -> dict[Phase, tuple[CaseCost, ...]]:
    costs: dict[Phase, tuple[CaseCost, ...]] = {}
    of_image = () if workload.projector is None else (Phase.ENCODE_IMAGE,)
    for phase in (*of_image, *workload.graph_phases()):
        roles = _role_costs(workload, phase)
        embedding = roles.pop(EMBEDDING_ROLE, ())
        if phase in PROMPT_PHASES and (embedding or not workload.has_graph):
            costs[Phase.EMBEDDING] = _summed(embedding)
        is_known = bool(roles) and all(roles.values())
        costs[phase] = _summed(tuple(part for parts in roles.values() for part in parts)) if is_known else ()
    costs |= _draft_costs(workload)
    if workload.token_phases:
        costs |= _token_costs(workload.n_vocab)
    whole = (part for phase, parts in costs.items() for part in parts * workload.occurrences(phase))
    costs[Phase.END_TO_END] = tuple(whole) if all(costs.values()) else ()
    return costs


def _draft_costs(workload: LlamaWorkload) -> dict[Phase, tuple[CaseCost, ...]]:
    """Cost what a draft does: it reads the prompt, and proposes a round's tokens one after the other."""
    draft = workload.draft
    if draft is None:
        return {}
    once = {phase: draft.graph(phase) if draft.has_graph else () for phase in workload.graph_phases()}
    parts = {phase: _summed(_parts(draft, graph)) if graph else () for phase, graph in once.items()}
    times = {Phase.PREFILL: (Phase.DRAFT_PREFILL, 1), Phase.DECODE: (Phase.DRAFT, workload.n_draft)}
    return {name: _summed(parts[phase] * n_times) for phase, (name, n_times) in times.items() if phase in parts}


def _token_costs(n_vocab: int | None) -> dict[Phase, tuple[CaseCost, ...]]:
    """Cost what follows each evaluation: one row of logits copied, normalised, and drawn from."""
    if n_vocab is None:
        return dict.fromkeys(TOKEN_PHASES, ())
    row, candidates = 4 * n_vocab, _CANDIDATE_BYTES * n_vocab
    copy = OpCost(read_bytes=row, written_bytes=row)
    softmax = OpCost(flops=_SOFTMAX_FLOPS * n_vocab, read_bytes=3 * row, written_bytes=2 * row)
    sampling = OpCost(flops=n_vocab, read_bytes=row + candidates, written_bytes=candidates)
    return {
        phase: (CaseCost(cost=cost, type="f32", working_set_bytes=cost.moved_bytes),)
        for phase, cost in zip(TOKEN_PHASES, (copy, softmax, sampling), strict=True)
    }


def _parts(
    workload: LlamaWorkload, graph: tuple[Operator, ...], *, n_evaluations: int = 1, n_layers: int = 0
) -> tuple[CaseCost, ...]:
    """Give each operator of so many evaluations, by default of the model's layers, its place in the memory hierarchy.

    A parameter is read again after all parameters of an evaluation; an activation after about those of one layer.
    """
    parameter_bytes = sum(operator.cost.parameter_bytes for operator in graph) // n_evaluations
    layer_bytes = parameter_bytes // (n_layers or workload.weights.shape.n_layers)
    return tuple(
        CaseCost(
            cost=operator.cost,
            type=_stored_type(operator),
            working_set_bytes=parameter_bytes,
            activation_set_bytes=layer_bytes + operator.cost.moved_bytes - operator.cost.parameter_bytes,
            least_parameter_bytes=_routed_bytes(operator, all_alike=True),
            most_parameter_bytes=_routed_bytes(operator, all_alike=False),
        )
        for operator in graph
    )


def _summed(costs: tuple[CaseCost, ...]) -> tuple[CaseCost, ...]:
    """Join parts of one type and working set, so that a phase of hundreds of operators stays a handful of parts."""

    def key(part: CaseCost) -> tuple[str, int, int]:
        return part.type, part.working_set_bytes, part.activation_set_bytes or 0

    return tuple(
        CaseCost(
            cost=sum((part.cost for part in parts), start=NO_COST),
            type=type_name,
            working_set_bytes=held,
            activation_set_bytes=passed,
            least_parameter_bytes=sum(part.floor_parameter_bytes for part in parts),
            most_parameter_bytes=sum(part.ceiling_parameter_bytes for part in parts),
        )
        for (type_name, held, passed), group in groupby(sorted(costs, key=key), key=key)
        for parts in [tuple(group)]
    )


def _stored_type(operator: Operator) -> str:
    """Return the type of the weights, or of the keys; of what reads nothing that of what it writes."""
    return operator.sources[rule_of(operator.op).typed_source].type if operator.sources else operator.output.type


def _routed_bytes(operator: Operator, *, all_alike: bool) -> int | None:
    """Return the bytes of the experts that a batch reads if its tokens all choose alike, or as differently as can be.

    Alike, a batch shares the experts of one token: u of E; else it reads min(E, n u).
    """
    if operator.op != "MUL_MAT_ID" or not operator.cost.parameter_bytes:
        return None
    experts, _, chosen = operator.sources[:3]
    n_used, n_tokens = chosen.ne[:2]
    n_read = n_used if all_alike else min(experts.ne[2], n_used * n_tokens)
    return experts.n_bytes // experts.ne[2] * n_read


def _kernel_cost(kernel: KernelCase) -> CaseCost:
    cost = OpCost(flops=kernel.flops, read_bytes=kernel.read_bytes, written_bytes=kernel.written_bytes)
    return CaseCost(cost=cost, type="f32", working_set_bytes=cost.moved_bytes)
