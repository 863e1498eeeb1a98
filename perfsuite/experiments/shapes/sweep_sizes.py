"""The sizes of an operation as the command line gives them, and those that it need not give."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from perfsuite.errors import ShapeError
from perfsuite.workload.shapes.operation import Operation
from perfsuite.workload.shapes.operation_shape import block_values

#: Largest size, and most sizes of a range.
MOST_SIZE = 1 << 20
MOST_SIZES = 8192

#: What a range must be, for messages.
_FORM = "FIRST:LAST or FIRST:LAST:STEP, such as 1:512"

_OPTIONS = {"kvheads": "--kv-heads", "head": "--head-size"}

#: How far a sweep over the growing dimension goes where nobody said.
LONGEST = 512
#: Products and heads at the least. Operands of more products do not stay in a processor's caches, and time then goes
#: with the bytes that are read and not with the tiles that are computed: of 32 products of 512 x 128 F32 values, 8 MiB.
_LEAST_PRODUCTS, _LEAST_HEADS = 8, 32
_INNER = {Operation.GEMM: 128, Operation.BMM: 128, Operation.GEMV: 2048}
_HEAD_SIZE, _KV_HEADS = 64, 8

#: For --help.
DEFAULTS_TOLD = (
    f"What is not given: the growing dimension (n, attention's context) runs over 1:{LONGEST}, or is {LONGEST} where "
    "another is swept. gemm: m is a tile for each compute unit, k 128. bmm: b is the least multiple of the device's "
    f"compute units from {_LEAST_PRODUCTS} on, m 1, k 128. gemv: k {_INNER[Operation.GEMV]}. attention: "
    f"{_KV_HEADS} KV heads of {_HEAD_SIZE} values, and the least multiple of them and of the compute units from "
    f"{_LEAST_HEADS} on as heads. Where the work-groups of one more tile do not fill all compute units, the others "
    "idle until the next tile comes, and steps vanish between them: that is what these multiples are for. Products are "
    "few, because operands that no cache holds take as long as they are read, whatever the tile. gemv has no "
    "such dimension; on a device of U units it shows each U-th step."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRange:
    """One size, or those of a sweep."""

    sizes: range
    #: Whether it was given as a range, even of one size.
    is_range: bool

    @classmethod
    def one(cls, size: int) -> SizeRange:
        """Return a size that is not swept."""
        return cls(sizes=range(size, size + 1), is_range=False)


def size_option(dimension: str) -> str:
    """Return what a dimension is called on the command line."""
    return _OPTIONS.get(dimension, f"--{dimension}")


def size_range(option: str, text: str) -> SizeRange:
    """Return the sizes that ``N``, ``FIRST:LAST`` or ``FIRST:LAST:STEP`` names, the last one included.

    Raises `ShapeError`: it is none of these, holds no size, too many, or one that nothing has.
    """
    if not re.fullmatch(r"[0-9]{1,9}(?::[0-9]{1,9}){0,2}", text):
        raise ShapeError(f"{option}={text}: expected a size of 1 or more, or {_FORM}")
    first, *rest = map(int, text.split(":"))
    last, step = (*rest, 1)[:2] if rest else (first, 1)
    if step < 1 or last < first:
        raise ShapeError(f"{option}={text}: an empty range; expected {_FORM}")
    sizes = range(first, last + 1, step)
    if first < 1 or last > MOST_SIZE or len(sizes) > MOST_SIZES:
        raise ShapeError(f"{option}={text}: expected sizes of 1 to {MOST_SIZE}, and no more than {MOST_SIZES} of them")
    return SizeRange(sizes=sizes, is_range=bool(rest))


def swept_dimension(operation: Operation, asked: Mapping[str, SizeRange]) -> str:
    """Return the one dimension that is swept: the one that was given as a range, else the growing one.

    Raises `ShapeError`: none or two are ranges, or the range has a single size.
    """
    ranges = [name for name, each in asked.items() if each.is_range]
    if not ranges and operation.growing_dimension not in asked:
        return operation.growing_dimension
    if len(ranges) != 1:
        seen = " and ".join(map(size_option, ranges)) or "none"
        raise ShapeError(f"{operation.value}: {seen} given as a range; expected exactly one, as {_FORM}")
    (swept,) = ranges
    if len(asked[swept].sizes) < 2:
        raise ShapeError(f"{size_option(swept)}: a sweep over one size shows nothing; expected {_FORM}")
    return swept


def all_sizes(
    operation: Operation, asked: Mapping[str, SizeRange], *, type: str, tile: int | None, n_compute_units: int
) -> dict[str, SizeRange]:
    """Return the sizes of all dimensions: those asked for and, of the others, the defaults."""
    found = dict(asked)
    growing = operation.growing_dimension
    if growing not in found:
        is_free = not any(each.is_range for each in asked.values())
        found[growing] = size_range(size_option(growing), f"1:{LONGEST}" if is_free else str(LONGEST))
    defaults = _defaults(operation, found, type=type, tile=tile, n_compute_units=n_compute_units)
    return {name: found.get(name) or SizeRange.one(defaults[name]) for name in operation.dimensions}


def _defaults(
    operation: Operation, asked: Mapping[str, SizeRange], *, type: str, tile: int | None, n_compute_units: int
) -> dict[str, int]:
    block = block_values(type)
    if operation is Operation.ATTENTION:
        kv_heads = asked["kvheads"].sizes[-1] if "kvheads" in asked else _KV_HEADS
        if "heads" in asked and "kvheads" not in asked:
            kv_heads = math.gcd(kv_heads, asked["heads"].sizes[0])
        heads = _multiple(math.lcm(kv_heads, n_compute_units), _LEAST_HEADS)
        return {"heads": heads, "kvheads": kv_heads, "head": math.lcm(_HEAD_SIZE, block)}
    m = (tile or _LEAST_HEADS) * n_compute_units if operation is Operation.GEMM else 1
    products = _multiple(n_compute_units, _LEAST_PRODUCTS)
    return {"b": products, "m": m, "k": math.lcm(_INNER[operation], block)}


def _multiple(unit: int, least: int) -> int:
    return -(-least // unit) * unit
