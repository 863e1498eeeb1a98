"""Hypothesis strategies for shapes of operations, for hunts and for tests of your own.

    from hypothesis import given
    from perfsuite.experiments.shapes.strategies import shape_cases

    @given(shape_cases(Operation.GEMM, types=("f32", "q4_0"), bounds={"k": SizeRange(least=2, most=512)}))
    def test_my_kernel(case): ...

A failing case shrinks to the narrowest tile, f32, and the least size in each dimension: that is exact for what depends
on thresholds, on single sizes, on heads and their groups, and on remainders by powers of two up to a whole step of the
kernels; for other remainders, and for products of sizes, it is a shape that no small step makes smaller.

A size is drawn as a plain integer, and moved down to the next size of a kind. That a move is never upwards, and leaves
alone what is of the kind already, is what makes shrinking work: the least integer that leads to a size is the size
itself, so that it needs no move, and plain integers shrink well.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache
from math import isqrt

from hypothesis import strategies as st

from perfsuite.errors import ShapeError
from perfsuite.expectation.shapes.floor import INNER_STEP, dimension_steps
from perfsuite.experiments.shapes.bounds import Bounds, SizeRange, bounds_of, kv_heads_within, types_within
from perfsuite.workload import catalog
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation, OperationShape, block_values
from perfsuite.workload.shapes.shape_case import TILES, VECTORS, ShapeCase, Subject, Tiling


class Snap(Enum):
    """The kinds of sizes that an integer is moved down to."""

    NONE = "any size"
    BELOW = "one below a multiple"
    AT = "a multiple"
    ABOVE = "one above a multiple"
    POWER = "a power of two"
    PRIME = "a prime"
    ARCHITECTURE = "an architecture's"


def snapped(limit: int, snap: Snap, within: SizeRange, *, step: int, block: int = 1, known: Sequence[int] = ()) -> int:
    """Return the largest size of a kind that is not above `limit`, in whole blocks, or `limit` where there is none.

    The range has whole blocks at both ends, and both are in it. `step` is what multiples are counted in, and `known`
    the sizes that architectures have, in ascending order.
    """
    found = {
        Snap.NONE: lambda: limit,
        Snap.BELOW: lambda: (limit + 1) // step * step - 1,
        Snap.AT: lambda: limit // step * step,
        Snap.ABOVE: lambda: (limit - 1) // step * step + 1 if limit > step else 0,
        Snap.POWER: lambda: 1 << (limit.bit_length() - 1),
        Snap.PRIME: lambda: _prime(limit),
        Snap.ARCHITECTURE: lambda: next(iter(known[max(0, bisect_right(known, limit) - 1) :]), 0),
    }[snap]()
    size = found // block * block
    return size if within.least <= size <= limit else limit // block * block


def beside_multiple(size: int, step: int) -> Snap:
    """Return where a size is beside multiples of a step, one of the first four kinds."""
    places = {0: Snap.AT, step - 1: Snap.BELOW, 1: Snap.ABOVE}
    return places.get(size % step, Snap.NONE) if size > 1 else Snap.NONE


@cache
def architecture_sizes(operation: Operation, dimension: str) -> tuple[int, ...]:
    """Return the sizes that a dimension has in the catalogue's architectures, and their halves, in ascending order.

    Halves, down to what is odd, keep what makes a size awkward and fit small kernels. A vocabulary is not halved.
    """
    found = {half for name in catalog.names() for half in _own_sizes(catalog.find(name), operation, dimension)}
    return tuple(sorted(found))


def _own_sizes(architecture: Architecture, operation: Operation, dimension: str) -> Iterator[int]:
    heads, kv_heads = architecture.n_heads, architecture.n_kv_heads
    widths = (architecture.n_embd, architecture.n_ff, heads * architecture.head_dim, kv_heads * architecture.v_head_dim)
    head_sizes = (architecture.head_dim, architecture.v_head_dim)
    is_product = operation in (Operation.GEMM, Operation.GEMV)
    whole = {"b": (heads,), "head": head_sizes}
    if is_product:
        whole |= {"n": widths, "k": widths}
    elif operation is Operation.BMM:
        whole |= {"k": head_sizes}
    for size in whole.get(dimension, ()):
        yield from _halves(size)
    if is_product and dimension == "n":
        yield architecture.n_vocab


def _halves(size: int) -> Iterator[int]:
    yield size
    while size % 2 == 0:
        size //= 2
        yield size


def _prime(limit: int) -> int:
    primes = (each for each in range(limit, 1, -1) if all(each % divisor for divisor in range(2, isqrt(each) + 1)))
    return next(primes, 0)


#: Kinds of sizes, the plainest first; what is twice is drawn twice as often.
_SNAPS = (
    *(Snap.NONE, Snap.BELOW, Snap.AT, Snap.ABOVE, Snap.ABOVE, Snap.ABOVE),
    *(Snap.POWER, Snap.PRIME, Snap.ARCHITECTURE),
)

#: What multiples are counted in where a dimension is not cut into tiles.
_UNTILED_STEP = 8

#: How many steps are left is drawn up to so many times those that the most has, so that mostly all of them are.
_KEPT_SHARE, _LEAST_KEPT = 8, 16


def sizes(
    within: SizeRange, *, step: int = _UNTILED_STEP, block: int = 1, known: Sequence[int] = ()
) -> st.SearchStrategy[int]:
    """Return sizes within a range, in whole blocks, many of them at and beside multiples of `step` or `known`.

    A size is an offset from the least one of any type, moved down to a size of interest, and then less some whole
    steps of `INNER_STEP`: mostly none. How many are left is drawn last, which is what shrinking tries first, so that
    sizes lose whole steps while all else is as it was drawn: the remainder that a fault depends on is kept, and a slow
    path that shows only in enough work is not lost because the rest was made small before.
    """
    whole = within.in_blocks(block)
    if whole is None:
        raise ShapeError(f"sizes {within.least}:{within.most}: expected some in whole blocks of {block}")
    least, most = whole.least - within.least, whole.most - within.least

    def size(drawn: tuple[Snap, int, int]) -> int:
        moved = snapped(within.least + drawn[1], drawn[0], whole, step=step, block=block, known=known)
        n_steps, remainder = divmod(moved - within.least, INNER_STEP)
        fewer = within.least + remainder + INNER_STEP * min(n_steps, drawn[2])
        return max(whole.least, fewer // block * block)

    n_kept = st.integers(least // INNER_STEP, max(_LEAST_KEPT, _KEPT_SHARE * (most // INNER_STEP)))
    return st.tuples(st.sampled_from(_SNAPS), st.integers(least, most), n_kept).map(size)


#: The same strategy again for the same arguments: making one takes longer than drawing from it.
_sizes = cache(sizes)


@cache
def tilings(tiles: tuple[int, ...] = TILES, vectors: tuple[int, ...] = VECTORS) -> st.SearchStrategy[Tiling]:
    """Return tiles with vectors that are no wider than the tile."""
    return st.tuples(st.sampled_from(tiles), st.sampled_from(vectors)).map(
        lambda drawn: Tiling(tile=drawn[0], vector=min(drawn))
    )


@st.composite
def shape_cases(
    draw: st.DrawFn,
    operation: Operation,
    *,
    subject: Subject = Subject.TILED,
    types: Sequence[str] = STORED_TYPES,
    bounds: Bounds | None = None,
    tiles: Sequence[int] = TILES,
    vectors: Sequence[int] = VECTORS,
) -> ShapeCase:
    """Return cases of an operation: type, tiling where the subject has one, and sizes within the bounds.

    Dimensions without bounds have `DEFAULT_BOUNDS`; types that have no whole block within them are left out.
    """
    found = bounds_of(operation, bounds)
    fitting = types_within(operation, found, types)
    if not fitting:
        inner, within = operation.inner_dimension, found[operation.inner_dimension]
        wanted = ", ".join(types) or "some type"
        raise ShapeError(f"{inner}={within.least}:{within.most}: expected a whole block of {wanted}")
    type = draw(st.sampled_from(fitting))
    tiling = draw(tilings(tuple(tiles), tuple(vectors))) if subject is Subject.TILED else None
    steps = _steps(operation, subject, tiling)
    named = draw(_heads(found["heads"], found["kvheads"])) if operation is Operation.ATTENTION else {}
    rest = [name for name in operation.dimensions if name not in (*named, operation.inner_dimension)]
    for name in (*rest, operation.inner_dimension):
        is_inner = name == operation.inner_dimension
        block, step = block_values(type) if is_inner else 1, steps.get(name, _UNTILED_STEP)
        known = architecture_sizes(operation, name)
        named[name] = draw(_sizes(found[name], step=step, block=block, known=known))
    return ShapeCase(subject=subject, shape=OperationShape.of_sizes(operation, type, named), tiling=tiling)


@st.composite
def _heads(draw: st.DrawFn, heads: SizeRange, kv_heads: SizeRange) -> dict[str, int]:
    """Return heads and KV heads that divide them.

    Heads are groups of KV heads within a limit, and the KV heads may be fewer for the same heads; or, plainer, heads
    are the limit itself over the fewest KV heads. So each shrinks on its own, whichever of them a fault depends on:
    heads as the limit, KV heads for equal groups or for equal heads, and groups.
    """
    counts = kv_heads_within({"heads": heads, "kvheads": kv_heads})
    if not counts:
        raise ShapeError(
            f"heads={heads.least}:{heads.most} with kvheads={kv_heads.least}:{kv_heads.most}: expected some heads to "
            "be a multiple of kvheads"
        )
    is_grouped = draw(st.sampled_from((False, True, True)))
    limit = draw(_counts(heads.least, heads.most))
    if not is_grouped:
        return {"kvheads": counts[0], "heads": _multiple(counts[0], heads, limit)}
    wanted, group = draw(_counts(counts[0], counts[-1])), draw(_counts(1, heads.most))
    most_kv = draw(_counts(counts[0], _KEPT_SHARE * counts[-1]))
    kv_heads_drawn = max(each for each in counts if each <= wanted)
    found = _multiple(kv_heads_drawn, heads, min(limit, group * kv_heads_drawn))
    fewer = [each for each in counts if each <= min(most_kv, kv_heads_drawn) and found % each == 0]
    return {"kvheads": fewer[-1] if fewer else kv_heads_drawn, "heads": found}


def _counts(least: int, most: int) -> st.SearchStrategy[int]:
    """Return integers as offsets, as sizes are: Hypothesis shrinks bits, and those of the distance to the least."""
    return st.integers(0, most - least).map(lambda offset: least + offset)


def _multiple(count: int, within: SizeRange, limit: int) -> int:
    """Return the largest multiple within the range that is not above `limit`, or else the least."""
    whole = within.in_blocks(count)
    assert whole is not None
    return max(whole.least, limit // count * count)


@cache
def _steps(operation: Operation, subject: Subject, tiling: Tiling | None) -> dict[str, int]:
    smallest = OperationShape(operation=operation, type="f32", sizes=(1,) * len(operation.dimensions))
    return dimension_steps(ShapeCase(subject=subject, shape=smallest, tiling=tiling))
