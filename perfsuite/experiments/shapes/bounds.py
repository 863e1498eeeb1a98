"""Between which sizes shapes are drawn: small kernels by default, so that many shapes fit into a minute."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfsuite.errors import ShapeError, meant
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation, block_values

#: What no bench can address is not drawn either; looking for the primes below it would take minutes.
MOST_SIZE = 2**30

_EXPECTED = "expected <dimension>=<least>:<most>,.., such as k=2:512,n=1:512"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRange:
    """The sizes that a dimension may have, both ends included; `ShapeError` where there is none."""

    least: int
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= MOST_SIZE:
            raise ShapeError(f"sizes {self.least}:{self.most}: expected 1 to {MOST_SIZE}, the least first")

    def in_blocks(self, block: int) -> SizeRange | None:
        """Return the range between its first and its last multiple of `block`; None where it holds none."""
        least, most = -(-self.least // block) * block, self.most // block * block
        return SizeRange(least=least, most=most) if least <= most else None


Bounds = Mapping[str, SizeRange]


def _between(**ends: tuple[int, int]) -> Bounds:
    return {name: SizeRange(least=least, most=most) for name, (least, most) in ends.items()}


#: Sizes whose launches take well below a millisecond on a processor.
DEFAULT_BOUNDS: Mapping[Operation, Bounds] = {
    Operation.GEMM: _between(m=(1, 64), n=(1, 256), k=(1, 512)),
    Operation.BMM: _between(b=(1, 16), m=(1, 8), n=(1, 512), k=(1, 256)),
    Operation.GEMV: _between(n=(1, 1024), k=(1, 1024)),
    Operation.ATTENTION: _between(heads=(1, 32), kvheads=(1, 8), head=(1, 256), context=(1, 512)),
}

#: Sizes whose launches take so long that a forecast bounds them; the forecasts of short ones do not.
TIMED_BOUNDS: Mapping[Operation, Bounds] = {
    Operation.GEMM: _between(m=(4, 64), n=(512, 2048), k=(512, 2048)),
    Operation.BMM: _between(b=(8, 32), m=(1, 8), n=(512, 4096), k=(64, 256)),
    Operation.GEMV: _between(n=(1024, 8192), k=(1024, 4096)),
    Operation.ATTENTION: _between(heads=(8, 32), kvheads=(1, 8), head=(64, 256), context=(512, 4096)),
}


def bounds_of(operation: Operation, given: Bounds | None = None) -> Bounds:
    """Return the bounds of all dimensions of an operation; what is given goes before the default."""
    wanted = given or {}
    return {name: wanted.get(name, default) for name, default in DEFAULT_BOUNDS[operation].items()}


def types_within(operation: Operation, bounds: Bounds, types: Iterable[str] = STORED_TYPES) -> tuple[str, ...]:
    """Return those of the types that have whole blocks within the bounds of the inner dimension."""
    inner = bounds[operation.inner_dimension]
    return tuple(each for each in types if inner.in_blocks(block_values(each)) is not None)


def kv_heads_within(bounds: Bounds) -> tuple[int, ...]:
    """Return the counts of KV heads that have a multiple within the bounds of the heads."""
    heads, kv_heads = bounds["heads"], bounds["kvheads"]
    return tuple(each for each in range(kv_heads.least, kv_heads.most + 1) if heads.in_blocks(each) is not None)


def parse_bounds(text: str, operations: Iterable[Operation]) -> Bounds:
    """Read ``k=2:512,n=1:512`` for dimensions that some of the operations have; `ShapeError` where it is none."""
    known = tuple(dict.fromkeys(name for operation in operations for name in operation.dimensions))
    found: dict[str, SizeRange] = {}
    for entry in text.replace(" ", "").split(","):
        match = re.fullmatch(r"([a-z]+)=([0-9]{1,18}):([0-9]{1,18})", entry)
        if match is None or match[1] in found:
            raise ShapeError(f"{text}: {entry!r} is {'not a range' if match is None else 'there twice'}; {_EXPECTED}")
        if match[1] not in known:
            raise ShapeError(f"{text}: no dimension {match[1]!r}; there are {', '.join(known)}{meant(match[1], known)}")
        found[match[1]] = SizeRange(least=int(match[2]), most=int(match[3]))
    return found
