"""Sizes of interest: what architectures use, and what lies at and beside multiples of a tile.

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

from perfsuite.experiments.shapes.bounds import SizeRange
from perfsuite.workload import catalog
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.shapes.operation import Operation


class Snap(Enum):
    """The kinds of sizes that an integer is moved down to."""

    #: The integer itself.
    NONE = "any size"
    BELOW = "one below a multiple"
    AT = "a multiple"
    ABOVE = "one above a multiple"
    POWER = "a power of two"
    PRIME = "a prime"
    ARCHITECTURE = "an architecture's"


def snapped(limit: int, snap: Snap, *, step: int, known: Sequence[int] = ()) -> int:
    """Return the largest size of a kind that is not above `limit`, or `limit` where there is none.

    `step` is what multiples are counted in, and `known` the sizes that architectures have, in ascending order.
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
    return found if 1 <= found <= limit else limit


def snapped_within(
    limit: int, snap: Snap, within: SizeRange, *, step: int, block: int = 1, known: Sequence[int] = ()
) -> int:
    """Return what `snapped` does in whole blocks, unless that is out of the range; `limit` is in it, and so is this."""
    size = snapped(limit, snap, step=step, known=known) // block * block
    return size if size >= within.least else limit // block * block


def fewer_steps(size: int, least: int, n_kept: int, *, step: int) -> int:
    """Return `size` with at most `n_kept` of its whole steps above `least`, and the same remainder."""
    n_steps, remainder = divmod(size - least, step)
    return least + remainder + step * min(n_steps, n_kept)


def beside_multiple(size: int, step: int) -> Snap:
    """Return where a size lies beside multiples of a step, one of the first four kinds."""
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
    """Return what a dimension is in one architecture; nothing where no architecture fixes it."""
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
    return next((each for each in range(limit, 1, -1) if _is_prime(each)), 0)


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, isqrt(number) + 1))
