"""The sizes that a policy is measured at: lists, steps, and ranges whose sizes grow by a factor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.sweep_sizes import LONGEST, MOST_SIZE, SizeRange, all_sizes
from perfsuite.workload.shapes.operation import Operation
from perfsuite.workload.shapes.operation_shape import block_values

#: Most sizes of a grid: each is measured with each choice.
MOST_GRID_SIZES = 100

FORM = "a list such as 1,8,64, or FIRST:LAST or FIRST:LAST:STEP, such as 1:512"

#: What defaults rest on: the largest tile that is tried, and any device, for a grid is laid before one is opened.
_TILE, _COMPUTE_UNITS = 64, 1


def grid_sizes(
    operation: Operation, type: str, texts: Mapping[str, str]
) -> tuple[str, tuple[int, ...], dict[str, int]]:
    """Return the dimension that decides, its sizes, and the sizes of all others, from what options give.

    Raises `ShapeError`: a text names no sizes, or there is not exactly one dimension of several sizes.
    """
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
    asked = {
        name: SizeRange(sizes=range(each[0], each[-1] + 1), is_range=name == deciding) for name, each in sizes.items()
    }
    found = all_sizes(operation, asked, type=type, tile=_TILE, n_compute_units=_COMPUTE_UNITS)
    fixed = {name: found[name].sizes[0] for name in operation.dimensions if name != deciding}
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
