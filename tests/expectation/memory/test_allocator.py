"""The allocator's rules, one graph of a few tensors each."""

from __future__ import annotations

from perfsuite.expectation.memory.allocator import ALIGNMENT_BYTES, GraphTensor, place_tensors, reserved_bytes


def leaf(n_bytes: int) -> GraphTensor:
    """An input."""
    return GraphTensor(n_bytes=n_bytes, is_leaf=True)


def node(n_bytes: int | None, *sources: int, in_place: bool = False, is_output: bool = False) -> GraphTensor:
    """An operator's output; `in_place` where it may take over any of its sources."""
    return GraphTensor(n_bytes=n_bytes, sources=sources, in_place_of=sources if in_place else (), is_output=is_output)


def test_an_empty_graph_needs_nothing() -> None:
    """No tensors, no buffer."""
    assert reserved_bytes((), place_tensors(())) == 0


def test_every_tensor_begins_at_a_multiple_of_the_alignment() -> None:
    """A tensor of 40 bytes takes 64."""
    graph = (leaf(40), leaf(1), node(8, 0, 1))
    assert place_tensors(graph) == (0, 64, 96)
    assert reserved_bytes(graph, place_tensors(graph)) == 96 + ALIGNMENT_BYTES


def test_leaves_come_before_all_nodes() -> None:
    """A leaf that stands behind a node still lies in front of it."""
    assert place_tensors((leaf(32), node(32, 0), leaf(32), node(32, 1, 2))) == (0, 64, 32, 0)


def test_what_was_read_for_the_last_time_becomes_a_hole() -> None:
    """The third tensor of a chain lies where the first was."""
    assert place_tensors((leaf(64), node(64, 0), node(64, 1), node(64, 2))) == (0, 64, 0, 64)


def test_a_leaf_that_nobody_reads_stays() -> None:
    """Its range is never given out again."""
    assert place_tensors((leaf(32), leaf(32), node(32, 0), node(32, 2)))[3] == 0
    assert place_tensors((leaf(32), leaf(32), node(64, 0), node(64, 2)))[3] == 128


def test_an_operator_in_place_takes_over_its_only_readers_source() -> None:
    """No second range is needed."""
    assert place_tensors((leaf(64), node(64, 0), node(64, 1, in_place=True))) == (0, 64, 64)


def test_an_operator_does_not_take_over_what_is_read_again() -> None:
    """A residual that is added later stays whole."""
    graph = (leaf(64), node(64, 0), node(64, 1, in_place=True), node(64, 2, 1, in_place=True))
    assert place_tensors(graph) == (0, 64, 0, 0)


def test_an_output_is_neither_freed_nor_taken_over() -> None:
    """What follows an output lies elsewhere, and the output's range stays."""
    graph = (leaf(32), node(32, 0, is_output=True), node(32, 1, in_place=True), node(32, 2), node(32, 3))
    assert place_tensors(graph) == (0, 32, 0, 64, 0)


def test_the_smallest_hole_that_fits_is_taken() -> None:
    """Of holes of 64 and 32 bytes, 32 bytes go into the second."""
    graph = (leaf(64), leaf(32), leaf(32), leaf(32), node(None, 0, 2), node(32, 3), node(64, 1, 3, 5))
    offsets = place_tensors(graph)
    assert offsets[5] == 96
    assert offsets[6] == 0


def test_holes_side_by_side_are_one() -> None:
    """Two neighbours that are free take a tensor of both their sizes."""
    assert place_tensors((leaf(32), leaf(32), leaf(32), node(None, 0, 1), node(64, 2)))[4] == 0


def test_what_lies_elsewhere_has_no_offset_and_frees_its_sources() -> None:
    """A row that is written into the cache takes nothing of the buffer."""
    assert place_tensors((leaf(32), node(None, 0), leaf(32), node(32, 2))) == (0, None, 32, 0)
