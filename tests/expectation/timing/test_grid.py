"""The operators that a calibration measures."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from perfsuite.expectation.timing.features import family, features
from perfsuite.expectation.timing.grid import EXPERT_TYPES, STANDARD_TYPES, standard_shapes, typical_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.workload.ggml_types import GGML_TYPES

SHAPES = standard_shapes()


def by_family_and_rows(shapes: tuple[OperatorShape, ...]) -> dict[tuple[tuple[str, str], int], list[OperatorShape]]:
    """Group shapes by what shares the weights of a fit."""
    grouped = defaultdict(list)
    for shape in shapes:
        grouped[family(shape), shape.n_tokens].append(shape)
    return grouped


def test_every_kind_of_operator_is_measured() -> None:
    """The grid has each operator that a forecast of a dense model or of experts needs."""
    assert {shape.op for shape in SHAPES} == {
        *("MUL_MAT", "MUL_MAT_ID", "FLASH_ATTN_EXT", "SOFT_MAX", "RMS_NORM+MUL", "ROPE"),
        *("ADD", "MUL", "MUL/scalar", "SWIGLU", "CPY", "CONCAT", "GET_ROWS", "SET_ROWS"),
    }


def test_nothing_is_measured_twice() -> None:
    """A point that occurred twice would be seen by the fit that is meant to leave it out."""
    assert len(set(SHAPES)) == len(SHAPES)


def test_rows_are_whole_blocks() -> None:
    """Every row of weights and cache is one that its type can hold."""
    assert [shape for shape in SHAPES if not GGML_TYPES[shape.type.upper()].fits(shape.n_inner)] == []


@pytest.mark.parametrize("name", sorted({family(shape) for shape in SHAPES}), ids="-".join)
def test_there_is_more_than_one_level_of_rows(name: tuple[str, str]) -> None:
    """Each kind is measured at one row of activations and at several hundred, with levels between."""
    levels = {shape.n_tokens for shape in SHAPES if family(shape) == name}
    assert min(levels) == 1
    assert max(levels) >= 512
    assert len(levels) >= 4


def test_the_points_of_a_fit_tell_its_terms_apart() -> None:
    """At each level there are enough points for every term; experts of one token have a term less."""
    for key, members in by_family_and_rows(SHAPES).items():
        terms = np.asarray([features(shape, shape.n_tokens, 2) for shape in members])
        n_terms = terms.shape[1]
        expected = n_terms - 1 if key[0][0] == "MUL_MAT_ID" and key[1] == 1 else n_terms
        assert np.linalg.matrix_rank(terms / terms.max(axis=0)) == expected, key
        assert len(members) > expected, key


def test_types_are_those_that_were_asked_for() -> None:
    """Products and experts are measured for the types that are given, everything else as it is."""
    few = standard_shapes(("q4_0",))
    assert {shape.type for shape in few if family(shape)[0] in ("MUL_MAT", "MUL_MAT_ID")} == {"q4_0"}
    assert [shape for shape in SHAPES if shape not in few] == [
        shape for shape in SHAPES if family(shape)[0] in ("MUL_MAT", "MUL_MAT_ID") and shape.type != "q4_0"
    ]
    assert {shape.type for shape in SHAPES if shape.op == "MUL_MAT_ID"} == set(EXPERT_TYPES)
    assert {shape.type for shape in SHAPES if family(shape)[0] == "MUL_MAT"} == set(STANDARD_TYPES)
    assert not any(shape.op == "MUL_MAT_ID" for shape in standard_shapes(("f32",)))


def test_typical_shapes_are_two_of_each_kind() -> None:
    """Each kind and type has one shape at the fewest and one at the most rows, and both were measured."""
    found = typical_shapes(SHAPES)
    assert set(found) <= set(SHAPES)
    for name in {family(shape) for shape in SHAPES}:
        levels = {shape.n_tokens for shape in SHAPES if family(shape) == name}
        assert [shape.n_tokens for shape in found if family(shape) == name] == [min(levels), max(levels)]


def test_a_typical_shape_is_the_one_in_the_middle() -> None:
    """Of three products the second in size stands for all."""
    small, middle, large = (OperatorShape(op="MUL_MAT", type="f16", n_inner=n, n_outer=n) for n in (64, 128, 256))
    assert typical_shapes((large, small, middle)) == (middle,)
