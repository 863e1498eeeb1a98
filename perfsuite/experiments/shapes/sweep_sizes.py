"""The sizes of an operation as the command line gives them, and those that it need not give."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from perfsuite.errors import ShapeError
from perfsuite.workload.shapes.operation_shape import Operation, block_values

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

DEFAULTS_TOLD = (
    f"Defaults: n (attention: context) is swept over 1:{LONGEST}, or is {LONGEST} where another size is swept. "
    "Of gemm, m is a tile for each compute unit, k 128. "
    f"Of bmm, m is 1, k 128, b the least multiple of the compute units from {_LEAST_PRODUCTS} on. "
    f"Of gemv, k is {_INNER[Operation.GEMV]}. "
    f"Attention has {_KV_HEADS} KV heads of {_HEAD_SIZE} values, heads from {_LEAST_HEADS} on."
)


#: What each dimension is.
MEANS = {
    "m": "tokens",
    "n": "rows of weights or keys",
    "k": "inner dimension",
    "b": "products in a batch, such as heads",
    "heads": "query heads",
    "kvheads": "KV heads",
    "head": "head size",
    "context": "positions in the KV cache",
}


def size_option(dimension: str) -> str:
    """Return what a dimension is called on the command line."""
    return _OPTIONS.get(dimension, f"--{dimension}")


def size_range(option: str, text: str) -> range:
    """Return what ``N`` or ``FIRST:LAST[:STEP]`` names, the last one included; `ShapeError` where it is none."""
    if not re.fullmatch(r"[0-9]{1,9}(?::[0-9]{1,9}){0,2}", text):
        raise ShapeError(f"{option}={text}: expected a size of 1 or more, or {_FORM}")
    first, *rest = map(int, text.split(":"))
    last, step = (*rest, 1)[:2] if rest else (first, 1)
    if step < 1 or last < first:
        raise ShapeError(f"{option}={text}: an empty range; expected {_FORM}")
    sizes = range(first, last + 1, step)
    if first < 1 or last > MOST_SIZE or len(sizes) > MOST_SIZES:
        raise ShapeError(f"{option}={text}: expected sizes of 1 to {MOST_SIZE}, and no more than {MOST_SIZES} of them")
    return sizes


def swept_dimension(operation: Operation, texts: Mapping[str, str]) -> str:
    """Return the dimension that was given as a range, else the growing one; `ShapeError` where two were."""
    ranges = [name for name, text in texts.items() if ":" in text]
    if not ranges and operation.growing_dimension not in texts:
        return operation.growing_dimension
    if len(ranges) != 1:
        seen = " and ".join(map(size_option, ranges)) or "none"
        raise ShapeError(f"{operation.value}: {seen} given as a range; expected exactly one, as {_FORM}")
    (swept,) = ranges
    if len(size_range(size_option(swept), texts[swept])) < 2:
        raise ShapeError(f"{size_option(swept)}: a sweep over one size shows nothing; expected {_FORM}")
    return swept


def all_sizes(
    operation: Operation, asked: Mapping[str, range], swept: str, *, type: str, tile: int | None, n_compute_units: int
) -> dict[str, range]:
    """Return the sizes of all dimensions: those asked for and, of the others, the defaults."""
    first = {name: each[-1 if name == "kvheads" else 0] for name, each in asked.items()}
    defaults = _defaults(operation, first, type=type, tile=tile, n_compute_units=n_compute_units)
    found = {name: range(size, size + 1) for name, size in defaults.items()}
    found[operation.growing_dimension] = range(1 if swept == operation.growing_dimension else LONGEST, LONGEST + 1)
    return {name: asked.get(name) or found[name] for name in operation.dimensions}


def _defaults(
    operation: Operation, asked: Mapping[str, int], *, type: str, tile: int | None, n_compute_units: int
) -> dict[str, int]:
    block = block_values(type)
    if operation is Operation.ATTENTION:
        kv_heads = asked.get("kvheads", math.gcd(_KV_HEADS, asked.get("heads", _KV_HEADS)))
        heads = _multiple(math.lcm(kv_heads, n_compute_units), _LEAST_HEADS)
        return {"heads": heads, "kvheads": kv_heads, "head": math.lcm(_HEAD_SIZE, block)}
    m = (tile or _LEAST_HEADS) * n_compute_units if operation is Operation.GEMM else 1
    products = _multiple(n_compute_units, _LEAST_PRODUCTS)
    return {"b": products, "m": m, "k": math.lcm(_INNER[operation], block)}


def _multiple(unit: int, least: int) -> int:
    return -(-least // unit) * unit


#: Most sizes of a grid: each is measured with each choice.
MOST_GRID_SIZES = 100

FORM = "a list such as 1,8,64, or FIRST:LAST or FIRST:LAST:STEP, such as 1:512"

#: What defaults rest on: the largest tile that is tried, and any device, for a grid is laid before one is opened.
_TILE, _COMPUTE_UNITS = 64, 1


def grid_sizes(
    operation: Operation, type: str, texts: Mapping[str, str]
) -> tuple[str, tuple[int, ...], dict[str, int]]:
    """Return the one dimension of several sizes, these, and the others; `ShapeError` where there is not exactly one."""
    growing = operation.growing_dimension
    given = dict(texts)
    if growing not in given and not any(re.search(r"[:,]", text) for text in given.values()):
        given[growing] = f"1:{LONGEST}"
    steps = {operation.inner_dimension: block_values(type)}
    sizes = {name: sizes_of(name, text, steps.get(name, 1)) for name, text in given.items()}
    several = [name for name, each in sizes.items() if len(each) > 1]
    if len(several) != 1:
        seen = " and ".join(several) or "none"
        raise ShapeError(
            f"{operation.value}: {seen} of several sizes; expected exactly one dimension to decide: {FORM}"
        )
    (deciding,) = several
    asked = {name: range(each[0], each[-1] + 1) for name, each in sizes.items()}
    found = all_sizes(operation, asked, deciding, type=type, tile=_TILE, n_compute_units=_COMPUTE_UNITS)
    fixed = {name: found[name][0] for name in operation.dimensions if name != deciding}
    return deciding, sizes[deciding], fixed


def sizes_of(dimension: str, text: str, step: int = 1) -> tuple[int, ...]:
    """Return the sizes that a text names, ascending.

    ``FIRST:LAST`` stands for both ends and the Fibonacci numbers between them: they grow by a factor of 1.6, which
    spreads them evenly over a logarithmic axis, and are no multiples of tiles more often than other numbers are. Where
    rows are of whole blocks, they are rounded up to `step`.

    Raises `ShapeError`: it is none of the forms, or names a size that nothing has, none, or too many.
    """
    if re.fullmatch(r"[0-9]{1,9}(?:,[0-9]{1,9})*", text):
        found = sorted({int(part) for part in text.split(",")})
    elif match := re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})(?::([0-9]{1,9}))?", text):
        found = _range(int(match[1]), int(match[2]), int(match[3]) if match[3] else None, step)
    else:
        raise ShapeError(f"{dimension}: {text!r} names no sizes; expected {FORM}")
    if not 1 <= len(found) <= MOST_GRID_SIZES or found[0] < 1 or found[-1] > MOST_SIZE:
        raise ShapeError(
            f"{dimension}: {text!r}: expected sizes of 1 to {MOST_SIZE}, and 1 to {MOST_GRID_SIZES} of them"
        )
    return tuple(found)


def number_list(option: str, text: str) -> tuple[int, ...]:
    """Return the whole numbers of an option, each once; `ShapeError` where it is no list of them."""
    parts = text.split(",")
    if not all(part.isdecimal() and len(part) < 6 for part in parts):
        raise ShapeError(f"{option}={text}: expected whole numbers by commas, such as 8,16")
    return tuple(dict.fromkeys(int(part) for part in parts))


def _range(first: int, last: int, stride: int | None, step: int) -> list[int]:
    if stride is not None:
        return list(range(first, last + 1, stride))[: MOST_GRID_SIZES + 1] if stride else []
    blocks = (-(-first // step), -(-last // step))
    between = (size for size in _fibonacci(blocks[1]) if size > blocks[0])
    return sorted({size * step for size in (*blocks, *between)}) if first <= last else []


def _fibonacci(most: int) -> Iterator[int]:
    low, high = 1, 2
    while low < most:
        yield low
        low, high = high, low + high
