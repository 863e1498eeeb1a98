"""Norms and their weights that an older llama.cpp computes one after the other: one operator, as newer ones have it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EventFlag, Ints
from perfsuite.trace.ebpf.nodes import RawOperator, Structures, latest
from perfsuite.trace.ebpf.operators import Operators

_F32, _F32_BYTES = "f32", 4


def with_pairs_as_one(operators: Operators, structures: Structures) -> Operators:
    """Let the product with its weight be a part of the norm before it, as the suite's own recorders count them.

    The conditions are those of the CPU backend for computing the two as one; `native/src/engine/recorder_graphs.c` has
    them too.
    """
    own = latest(structures.addresses, structures.evaluation, operators.address, operators.evaluation)
    first = _firsts(operators, structures, own)
    if not first.size:
        return operators
    end_ns, flags, counters = operators.end_ns.copy(), operators.flags.copy(), operators.counters.copy()
    is_counted = (counters[first] != NOTHING) & (counters[first + 1] != NOTHING)
    counters[first] = np.where(is_counted, counters[first] + counters[first + 1], NOTHING)
    end_ns[first] = operators.end_ns[first + 1]
    flags[first] = operators.flags[first + 1] | np.uint8(EventFlag.FUSED)
    kept = np.ones(flags.size, np.bool_)
    kept[first + 1] = False
    return replace(
        operators,
        begin=operators.begin[kept],
        start_ns=operators.start_ns[kept],
        end_ns=end_ns[kept],
        tid=operators.tid[kept],
        thread=operators.thread[kept],
        address=operators.address[kept],
        evaluation=operators.evaluation[kept],
        flags=flags[kept],
        counters=counters[kept],
    )


def _firsts(operators: Operators, structures: Structures, own: Ints) -> Ints:
    """Return the places of the norms of pairs, each of which its product follows on the same thread."""
    known, n_uses = structures.operators, _uses(structures)
    pairs: dict[tuple[int, int], bool] = {}
    follows = (operators.tid[1:] == operators.tid[:-1]) & (operators.evaluation[1:] == operators.evaluation[:-1])
    follows &= (own[1:] != NOTHING) & (own[:-1] != NOTHING)
    follows &= (operators.flags[:-1] & EventFlag.FUSED) == 0
    found = []
    for at in np.flatnonzero(follows).tolist():
        key = int(own[at]), int(own[at + 1])
        if key not in pairs:
            pairs[key] = _is_pair(known[key[0]], known[key[1]], n_uses)
        if pairs[key]:
            found.append(at)
    return np.array(found, np.int64)


def _uses(structures: Structures) -> Counter[int]:
    """Count the tensors that read each tensor."""
    readers = {each.address: each.source_addresses for each in structures.operators}
    return Counter(source for sources in readers.values() for source in sources)


def _is_pair(norm: RawOperator, product: RawOperator, n_uses: Counter[int]) -> bool:
    if (norm.op_name, product.op_name) != ("RMS_NORM", "MUL") or norm.address not in product.source_addresses:
        return False
    weights = [
        tensor
        for tensor, address in zip(product.node.sources, product.source_addresses, strict=False)
        if address != norm.address
    ]
    if len(weights) != 1 or n_uses[norm.address] != 1 or not norm.node.sources:
        return False
    made, weight = norm.node.tensor, weights[0]
    is_plain = {norm.node.sources[0].type, product.node.tensor.type, weight.type} == {_F32}
    fits = made.ne == product.node.tensor.ne and weight.ne[0] == made.ne[0] and weight.nb[0] == _F32_BYTES
    return is_plain and fits and made.root == norm.address
