"""What one ggml operator costs: FLOPs and bytes by one written convention, from shapes and types alone.

The convention, the same for the analytical graph and for a recorded one:

* 1 multiply-accumulate is 2 FLOPs; an exponential, a hyperbolic tangent, a division, a square root and a comparison
  are 1 each.
* Every tensor that an operator reads or writes is counted once, whole, at its stored size (quantised weights with
  their scales). Views, reshapes, permutations and transpositions cost nothing. Two views of one tensor are two
  operands: absorbed latent attention reads its values as a part of its keys, and both are counted.
* A gather or scatter moves only the rows that it touches, and its indices.
* A product with routed experts reads as many expert matrices as distinct experts must be expected (`experts_read`);
  its FLOPs are exact.
* Attention works on the KV cache as the engine pads it (a multiple of 256 positions), masked positions included.
* An operator that the engine computes together with its predecessor keeps its FLOPs; the tensor between the two does
  not move.
* A product with a Hadamard matrix is what the engine makes of it: a fast Walsh-Hadamard transform, which reads no
  matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.ggml_rules import experts_read
from perfsuite.expectation.graphs.operator import Shape, TensorShape, row_bytes
from perfsuite.expectation.op_rules import OPERATORS
from perfsuite.records.op_cost import OpCost

__all__ = ["Shape", "TensorShape", "cost_of", "experts_read", "row_bytes"]


def cost_of(
    op: str,
    output: TensorShape,
    sources: Sequence[TensorShape],
    *,
    is_weight: bool = False,
    weight_sources: Sequence[int] = (),
    kv_sources: Sequence[int] = (),
) -> OpCost:
    """Cost one ggml operator, by its name in the table and its shapes as ggml has them.

    `weight_sources` are the places of the sources that are parameters of the model; `is_weight` says the same of the
    one source that usually is: the first, or what the table says, such as the second of `ADD`, `MUL` and
    ``RMS_NORM+MUL``. `kv_sources` are the places of those that are the KV cache: what is read of them are KV bytes, and
    a `SET_ROWS` or `CPY` whose destination is one writes into it. Raises ArchitectureError for an operator that the
    table has no row of.
    """
    rule = OPERATORS.get(op)
    if rule is None:
        raise ArchitectureError(f"no cost is known for the operator {op}; it needs a row in expectation/op_rules.py")
    flops, reads, written = rule.cost(output, sources)
    usual = (min(rule.weight_source, len(reads) - 1),) if is_weight else ()  # sinks come last, with a mask or without
    parameters = {*weight_sources, *usual}
    return OpCost(
        flops=flops,
        read_bytes=sum(reads),
        written_bytes=written,
        parameter_bytes=sum(reads[place] for place in parameters),
        kv_read_bytes=sum(reads[place] for place in kv_sources),
        kv_written_bytes=written if rule.destination in kv_sources else 0,
    )
