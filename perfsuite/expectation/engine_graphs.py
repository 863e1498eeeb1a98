"""The graphs that an engine says it would compute for a model, by what they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graphs.operator import Operator
from perfsuite.expectation.graphs.request import Batch


class GraphKey(NamedTuple):
    """What the shapes of a graph follow from."""

    n_tokens: int
    n_outputs: int
    #: Positions of the cache.
    n_kv: int
    #: Whether these are the first tokens of a text, before which recurrent states are cleared.
    is_first: bool


def graph_key(batch: Batch) -> GraphKey:
    """Return what the graph of a batch is known by."""
    return GraphKey(batch.n_tokens, batch.n_outputs, batch.n_kv, batch.n_used == batch.n_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGraphs:
    """The operators of some evaluations, as the engine lists them, read-only."""

    operators_by_key: Mapping[GraphKey, tuple[Operator, ...]]

    def operators(self, batch: Batch) -> tuple[Operator, ...]:
        """Return the operators of one evaluation; an ArchitectureError where the engine was not asked for it."""
        found = self.operators_by_key.get(graph_key(batch))
        if found is None:
            raise ArchitectureError(
                f"the engine was not asked for the graph of {batch.n_tokens} tokens, {batch.n_outputs} outputs and "
                f"{batch.n_kv} positions"
            )
        return found

    @property
    def n_vocab(self) -> int | None:
        """Logits of a token; None where no graph gives any."""
        last = (each.output for graph in self.operators_by_key.values() for each in graph if each.role == _LOGITS)
        return next((output.ne[0] for output in last), None)


_LOGITS = "result_output"
