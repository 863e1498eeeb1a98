"""Chunked prefill: a prompt in pieces, of which each reuses the KV cache of the earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from perfsuite.expectation.op_cost import NO_COST, OpCost
from perfsuite.expectation.operators.dimensions import check_count, check_positive


def chunk_bounds(n_prompt: int, chunk: int, n_past: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the positions before each chunk and its tokens; the last chunk has what is left."""
    check_positive(n_prompt=n_prompt, chunk=chunk)
    check_count(n_past=n_past)
    for first in range(0, n_prompt, chunk):
        yield n_past + first, min(chunk, n_prompt - first)


def chunked(cost_of_chunk: Callable[[int, int], OpCost], n_prompt: int, chunk: int, n_past: int = 0) -> OpCost:
    """Add up `cost_of_chunk(n_past, n_tokens)` over the chunks of a prompt.

    Parameters are read once a chunk, so that traffic grows as chunks shrink; dispatches are those of a pass times
    ceil(n_prompt / chunk). *Source*: LIFE, Fig. 6.
    """
    costs = (cost_of_chunk(past, n_tokens) for past, n_tokens in chunk_bounds(n_prompt, chunk, n_past))
    return sum(costs, start=NO_COST)
