"""A model's tensors in short: what is alike in several layers is one row.

A row's name has in the place of a layer's number the numbers of all that have such a tensor, as in
``blk.0,2-5.attn_q.weight``, or a ``*`` where each layer has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from perfsuite.workload.tensors import TensorSpec

#: The number of a layer within a name, or the numbers in a row's.
_NUMBERS = re.compile(r"(?<=\.)(?:\d[\d,-]*|\*)(?=\.)")


def layer_of(name: str) -> int | None:
    """Return the number of the layer that a tensor belongs to, if to any."""
    found = _NUMBERS.search(name)
    return None if found is None else int(found[0])


def kind_of(name: str) -> str:
    """Return a tensor's name with a ``*`` for the number of its layer."""
    return _NUMBERS.sub("*", name)


def shortened(tensors: Iterable[TensorSpec], n_layers: int) -> Mapping[str, tuple[int, ...]]:
    """Return rows and their extents."""
    rows: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for spec in tensors:
        layers = rows.setdefault((kind_of(spec.name), spec.ne), [])
        layer = layer_of(spec.name)
        layers += [] if layer is None else [layer]
    return {kind.replace("*", _ranges(layers, n_layers)): ne for (kind, ne), layers in rows.items()}


def in_full(rows: Mapping[str, Sequence[int]], n_layers: int) -> tuple[TensorSpec, ...]:
    """Return the tensors of all rows: first those of no layer, then layer by layer."""
    order: dict[str, int] = {}
    found = [
        (order.setdefault(name.partition(".")[0], len(order)) if layer >= 0 else -1, layer, at, name, tuple(ne))
        for at, (row, ne) in enumerate(rows.items())
        for layer, name in _names(row, n_layers)
    ]
    return tuple(TensorSpec(name=name, ne=ne) for *_, name, ne in sorted(found))


def _names(row: str, n_layers: int) -> Iterator[tuple[int, str]]:
    found = _NUMBERS.search(row)
    if found is None:
        yield -1, row
        return
    for layer in _numbers(found[0], n_layers):
        yield layer, f"{row[: found.start()]}{layer}{row[found.end() :]}"


def _numbers(text: str, n_layers: int) -> Iterator[int]:
    for part in (f"0-{n_layers - 1}" if text == "*" else text).split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _ranges(layers: Sequence[int], n_layers: int) -> str:
    if list(layers) == list(range(n_layers)):
        return "*"
    starts = [at for at in layers if at - 1 not in layers]
    ends = [at for at in layers if at + 1 not in layers]
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in zip(starts, ends, strict=True))
