"""How the layers of an architecture repeat, so that a graph of a few of them gives the cost of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from perfsuite.workload.architecture import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPattern:
    """Two depths of an architecture, and how often what lies between them repeats.

    cost(all layers) = cost(first depth) + n_repeats (cost(second depth) - cost(first depth)), exactly.
    """

    depths: tuple[int, int]
    n_repeats: int


def layer_pattern(architecture: Architecture, tensor_types: Mapping[str, str]) -> LayerPattern | None:
    """Return the pattern of the layers, or None where they do not repeat, or are too few for it to be worthwhile.

    Leading dense layers stand before the pattern. With a sliding window the layers repeat in pairs. Layers are alike
    when all of their tensors have the same types; the last one, which alone gathers rows, is the last of either depth.
    """
    n_layers, n_leading = architecture.n_layers, _n_leading(architecture)
    period = 1 if architecture.sliding_window is None else 2
    shallow = n_leading + 1 + (n_layers - n_leading - 1) % period
    if shallow + period >= n_layers or not _repeat(tensor_types, range(n_leading, n_layers), period):
        return None
    return LayerPattern(depths=(shallow, shallow + period), n_repeats=(n_layers - shallow) // period)


def _n_leading(architecture: Architecture) -> int:
    moe = architecture.moe
    if moe is None or moe.n_dense_layers >= architecture.n_layers:
        return 0
    return moe.n_dense_layers


def _repeat(tensor_types: Mapping[str, str], layers: range, period: int) -> bool:
    """Whether every layer has the types of the one a period before it."""
    by_layer: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for name, type_name in tensor_types.items():
        if name.startswith("blk."):
            _, layer, tensor = name.split(".", 2)
            by_layer[int(layer)].add((tensor, type_name))
    return all(by_layer[layer] == by_layer[layer + period] for layer in layers[:-period])
