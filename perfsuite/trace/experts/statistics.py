"""What each expert of a trace cost: activations, time and reuse, all layers of one number together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfsuite.trace.experts.products import expert_products
from perfsuite.trace.experts.reuse import LayerReuse
from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertTime:
    """One expert of one layer."""

    layer: int
    expert: int
    n_activations: int
    mean_distance: float | None
    #: Its part of the layer's products with experts, by the rows that each expert was given; None where they were not
    #: timed.
    time_ns: float | None


def expert_times(layers: Sequence[LayerReuse], runs: OperatorRuns, table: OperatorTable) -> tuple[ExpertTime, ...]:
    """Return every expert of every layer, in their order."""
    by_step: Counter[tuple[int, int]] = Counter()
    durations_ns = runs.duration_ns
    for at, step, layer in expert_products(runs, table):
        by_step[step, layer] += int(durations_ns[at])
    return tuple(found for layer in layers for found in _of_layer(layer, by_step))


def _of_layer(layer: LayerReuse, by_step: Mapping[tuple[int, int], int]) -> list[ExpertTime]:
    rows: Counter[int] = Counter()
    for each in layer.activations:
        rows[each.iteration] += each.n_tokens
    spent: dict[int, float] = {}
    for each in layer.activations:
        time_ns = by_step.get((each.iteration, layer.layer))
        if time_ns is not None:
            spent[each.expert] = spent.get(each.expert, 0.0) + time_ns * each.n_tokens / rows[each.iteration]
    return [
        ExpertTime(
            layer=layer.layer,
            expert=use.expert,
            n_activations=use.n_activations,
            mean_distance=use.mean_distance,
            time_ns=spent.get(use.expert, 0.0) if spent else None,
        )
        for use in layer.uses()
    ]
