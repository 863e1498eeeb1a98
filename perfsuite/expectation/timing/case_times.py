"""Forecasts of the cases of a workload from a calibration, by case id."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from perfsuite.expectation.cases import REST_ROLE, LlamaWorkload
from perfsuite.expectation.timing.engine_times import EngineTimes, TimeForecast
from perfsuite.expectation.timing.features import shape_of
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.records.events import Phase

#: The role of the token table's gather, which is a phase of its own in a prefill.
_EMBEDDING_ROLE = "embd"

_TOKEN_PHASES = (Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING)


def case_forecasts(workload: LlamaWorkload, times: EngineTimes) -> dict[str, TimeForecast]:
    """Forecast the phases and the operators of a workload; what has no forecast is left out.

    A phase is the sum of its operators as they run within the engine, and the engine's own share. The end to end adds
    the phases as often as they occur.
    """
    if not workload.has_known_graph:
        return {}
    forecasts: dict[str, TimeForecast] = {}
    phases: dict[Phase, TimeForecast] = {}
    for phase in workload.graph_phases():
        roles = _shapes_by_role(workload, phase)
        prefix = f"operator/{workload.prefix}/{phase.value}"
        for role, shapes in roles.items():
            forecasts[f"{prefix}/{role}"] = times.part(shapes, phase.value)
        n_operators = sum(sum(shapes.values()) for shapes in roles.values())
        forecasts[f"{prefix}/{REST_ROLE}"] = times.rest(n_operators, phase.value)
        phases |= _graph_phases(phase, roles, times)
    for phase in _TOKEN_PHASES:
        forecast = times.token_phase(phase.value, workload.weights.architecture.n_vocab)
        if forecast is not None:
            phases[phase] = forecast
    if set(_TOKEN_PHASES) <= set(phases):
        phases[Phase.END_TO_END] = _end_to_end(workload, phases)
    return forecasts | {f"phase/{workload.prefix}/{phase.value}": each for phase, each in phases.items()}


def _shapes_by_role(workload: LlamaWorkload, phase: Phase) -> Mapping[str, Counter[OperatorShape]]:
    roles: dict[str, Counter[OperatorShape]] = defaultdict(Counter)
    for batch in workload.batches(phase):
        for operator in workload.operators(batch):
            if operator.output.n_elements:
                roles[operator.role][shape_of(operator, batch)] += 1
    return roles


def _graph_phases(
    phase: Phase, roles: Mapping[str, Counter[OperatorShape]], times: EngineTimes
) -> dict[Phase, TimeForecast]:
    """Return a phase without its gather of embeddings, and in a prefill that gather for itself."""
    embedding = roles.get(_EMBEDDING_ROLE, Counter())
    others = sum((shapes for role, shapes in roles.items() if role != _EMBEDDING_ROLE), start=Counter[OperatorShape]())
    found = {phase: times.phase(others, phase.value, n_elsewhere=sum(embedding.values()))}
    if phase is Phase.PREFILL and embedding:
        found[Phase.EMBEDDING] = times.part(embedding, phase.value)
    return found


def _end_to_end(workload: LlamaWorkload, phases: Mapping[Phase, TimeForecast]) -> TimeForecast:
    """Add the phases, each bound with its like: what is wrong with one is likely to be wrong with all."""
    n_gen = workload.scenario.n_gen
    n_drawn = n_gen + (1 if workload.scenario.n_prompt else 0)
    occurs = {Phase.DECODE: n_gen, **dict.fromkeys(_TOKEN_PHASES, n_drawn)}
    weighted = [(each, occurs.get(phase, 1)) for phase, each in phases.items()]
    return TimeForecast(
        expected_ns=sum(each.expected_ns * times for each, times in weighted),
        lower_ns=sum(each.lower_ns * times for each, times in weighted),
        upper_ns=sum(each.upper_ns * times for each, times in weighted),
    )
