"""How routers reuse experts: activations, density, and the distance since an expert was last active.

Per layer, over its iterations i = 0, 1, ... that route anything; an expert is active in an iteration where any token of
the batch chose it.

    distance of an activation in i    i - (the iteration before i in which the expert was active)
    stack distance                    other experts active since, those of i itself left out
    density of an iteration           active experts / experts of the layer

The first activation of an expert has neither distance. *Source*: ProfInfer, section on experts (reuse distance, in
iterations); Mattson et al., 'Evaluation techniques for storage hierarchies', IBM Systems Journal 9 (1970) (stack
distance).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_trace import Experts


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """One expert of a layer in one iteration."""

    iteration: int
    expert: int
    #: Tokens of the batch that chose it.
    n_tokens: int
    #: None where it was never active before.
    distance: int | None
    stack_distance: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertUse:
    """One expert of a layer over the run; what no activation has is None."""

    expert: int
    n_activations: int
    mean_distance: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReuse:
    """One layer's experts over the run."""

    layer: int
    n_experts: int
    #: Most experts that a token was routed to.
    n_used: int
    n_iterations: int
    #: In the order of time, and of experts within an iteration.
    activations: tuple[Activation, ...]

    @property
    def density_ratio(self) -> float:
        """Part of the experts that is active in an iteration, on average."""
        return len(self.activations) / (self.n_iterations * self.n_experts)

    @property
    def run_density_ratio(self) -> float:
        """Part of the experts that is ever active."""
        return len({each.expert for each in self.activations}) / self.n_experts

    @property
    def distances(self) -> tuple[int, ...]:
        return _distances(self.activations)

    @property
    def mean_distance(self) -> float | None:
        """Mean distance in iterations; None where no expert was active twice."""
        return _mean(self.distances)

    @property
    def mean_stack_distance(self) -> float | None:
        """Mean stack distance in experts; None where no expert was active twice."""
        return _mean([each.stack_distance for each in self.activations if each.stack_distance is not None])

    def uses(self) -> tuple[ExpertUse, ...]:
        """Return every expert of the layer, those that were never active too."""
        by_expert: list[list[Activation]] = [[] for _ in range(self.n_experts)]
        for each in self.activations:
            by_expert[each.expert].append(each)
        return tuple(
            ExpertUse(expert=expert, n_activations=len(own), mean_distance=_mean(_distances(own)))
            for expert, own in enumerate(by_expert)
        )

    def batches(self) -> tuple[tuple[int, ...], ...]:
        found: dict[int, list[int]] = {}
        for each in self.activations:
            found.setdefault(each.iteration, []).append(each.expert)
        return tuple(map(tuple, found.values()))


def _distances(activations: Sequence[Activation]) -> tuple[int, ...]:
    return tuple(each.distance for each in activations if each.distance is not None)


def _mean(distances: Sequence[int]) -> float | None:
    return sum(distances) / len(distances) if distances else None


def expert_reuse(experts: Experts, n_experts: int | None) -> tuple[LayerReuse, ...]:
    """Return the reuse in each layer, in their order.

    Where `n_experts` of a layer is not known, it has the highest that was ever chosen, and those below it.

    Raises MeasurementError: an expert was chosen that the layer does not have.
    """
    if not experts.size:
        return ()
    most = int(experts["expert"].max()) + 1
    if int(experts["expert"].min()) < 0 or (n_experts is not None and most > n_experts):
        raise MeasurementError(
            f"experts: {int(experts['expert'].min())} to {most - 1} were chosen, expected 0 to "
            f"{most if n_experts is None else n_experts - 1}; the ids were read wrongly"
        )
    return tuple(
        _layer(experts[experts["layer"] == layer], int(layer), n_experts or most)
        for layer in np.unique(experts["layer"])
    )


def _layer(experts: Experts, layer: int, n_experts: int) -> LayerReuse:
    iterations = np.unique(experts["iteration"])
    keys = experts["iteration"].astype(np.int64) * n_experts + experts["expert"]
    active, n_tokens = np.unique(keys, return_counts=True)
    pairs = list(zip((active // n_experts).tolist(), (active % n_experts).tolist(), n_tokens.tolist(), strict=True))
    return LayerReuse(
        layer=layer,
        n_experts=n_experts,
        n_used=int(experts["slot"].max()) + 1,
        n_iterations=int(iterations.size),
        activations=tuple(_activations(pairs, {each: at for at, each in enumerate(iterations.tolist())})),
    )


def _activations(pairs: Sequence[tuple[int, int, int]], places: dict[int, int]) -> Iterator[Activation]:
    """Walk through the iterations with the experts by the time of their last activation, the newest last."""
    last: dict[int, int] = {}
    for iteration, group in groupby(pairs, key=itemgetter(0)):
        batch, place = [(expert, n_tokens) for _, expert, n_tokens in group], places[iteration]
        newest_first = {expert: depth for depth, expert in enumerate(reversed(last))}
        older = newest_first.keys() - {expert for expert, _ in batch}
        for expert, n_tokens in batch:
            distance = stack = None
            if expert in last:
                distance = place - last[expert]
                stack = sum(newest_first[other] < newest_first[expert] for other in older)
            yield Activation(
                iteration=iteration, expert=expert, n_tokens=n_tokens, distance=distance, stack_distance=stack
            )
        for expert, _ in batch:
            last.pop(expert, None)
            last[expert] = place
