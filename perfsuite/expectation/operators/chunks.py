"""Chunked prefill: a prompt in pieces, of which each reuses the KV cache of the earlier ones."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.operators.dimensions import check_count, check_positive


def chunk_bounds(n_prompt: int, chunk: int, n_past: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the positions before each chunk and its tokens; the last chunk has what is left."""
    check_positive(n_prompt=n_prompt, chunk=chunk)
    check_count(n_past=n_past)
    for first in range(0, n_prompt, chunk):
        yield n_past + first, min(chunk, n_prompt - first)
