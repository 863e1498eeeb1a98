"""The allocator's rules, one graph of a few tensors each."""

from __future__ import annotations

import pytest

from perfsuite.expectation.memory.allocator import ALIGNMENT_BYTES, GraphTensor, place_tensors, reserved_bytes


def leaf(n_bytes: int) -> GraphTensor:
    """An input."""
    return GraphTensor(n_bytes=n_bytes, is_leaf=True)


def node(n_bytes: int | None, *sources: int, in_place: bool = False, is_output: bool = False) -> GraphTensor:
    """An operator's output; `in_place` where it may take over any of its sources."""
    return GraphTensor(n_bytes=n_bytes, sources=sources, in_place_of=sources if in_place else (), is_output=is_output)


@pytest.mark.parametrize(
    ("graph", "offsets"),
    [
        pytest.param((leaf(40), leaf(1), node(8, 0, 1)), (0, 64, 96), id="a tensor of 40 bytes takes 64"),
        pytest.param((leaf(32), node(32, 0), leaf(32), node(32, 1, 2)), (0, 64, 32, 0), id="leaves come before nodes"),
        pytest.param(
            (leaf(64), node(64, 0), node(64, 1), node(64, 2)), (0, 64, 0, 64), id="what was read becomes a hole"
        ),
        pytest.param((leaf(32), leaf(32), node(32, 0), node(32, 2)), (0, 32, 64, 0), id="a leaf may go"),
        pytest.param((leaf(32), leaf(32), node(64, 0), node(64, 2)), (0, 32, 64, 128), id="an unread leaf stays"),
        pytest.param(
            (leaf(64), node(64, 0), node(64, 1, in_place=True)), (0, 64, 64), id="in place of the only reader's source"
        ),
        pytest.param(
            (leaf(64), node(64, 0), node(64, 1, in_place=True), node(64, 2, 1, in_place=True)),
            (0, 64, 0, 0),
            id="not in place of what is read again",
        ),
        pytest.param(
            (leaf(32), node(32, 0, is_output=True), node(32, 1, in_place=True), node(32, 2), node(32, 3)),
            (0, 32, 0, 64, 0),
            id="an output is neither freed nor taken over",
        ),
        pytest.param(
            (leaf(64), leaf(32), leaf(32), leaf(32), node(None, 0, 2), node(32, 3), node(64, 1, 3, 5)),
            (0, 64, 96, 128, None, 96, 0),
            id="the smallest hole that fits",
        ),
        pytest.param(
            (leaf(32), leaf(32), leaf(32), node(None, 0, 1), node(64, 2)), (0, 32, 64, None, 0), id="holes join"
        ),
        pytest.param(
            (leaf(32), node(None, 0), leaf(32), node(32, 2)), (0, None, 32, 0), id="what lies elsewhere takes nothing"
        ),
    ],
)
def test_where_tensors_are_put(graph: tuple[GraphTensor, ...], offsets: tuple[int | None, ...]) -> None:
    """Each rule of the allocator, by a graph of a few tensors."""
    assert place_tensors(graph) == offsets


def test_the_buffer_holds_every_tensor() -> None:
    """It ends behind the last one, aligned; no tensors, no buffer."""
    graph = (leaf(40), leaf(1), node(8, 0, 1))
    assert reserved_bytes(graph, place_tensors(graph)) == 96 + ALIGNMENT_BYTES
    assert reserved_bytes((), place_tensors(())) == 0
