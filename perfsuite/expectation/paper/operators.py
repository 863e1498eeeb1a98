"""LIFE's operators, and the number formats by which they move bytes.

Formulas are those that the paper states: what an operator computes and moves, from its dimensions and formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from perfsuite.errors import QuantizationError, meant
from perfsuite.records.op_cost import OpCost
from perfsuite.workload.ggml_types import GGML_TYPES

#: Weights that share a scale and a zero point in ``int4``. *Source*: LIFE, its AWQ-like weights in groups of 128.
INT4_GROUP = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """A format as blocks of values, and the parameters that a matrix of weights holds beside them."""

    name: str
    #: Values of the smallest unit that is stored whole, and its bytes; scales inside of a block are part of it.
    block_values: int
    block_bytes: int
    #: Weights along k that share further parameters, and the bits of these; only matrices have them.
    group_values: int = 1
    group_bits: int = 0

    @property
    def is_quantized(self) -> bool:
        """Whether values have to be dequantised before they are multiplied: anything but plain floating point."""
        return self.name not in _FLOATS

    def stored_bytes(self, n_elements: int) -> int:
        """Bytes of `n_elements` in a row: whole blocks, ceil(n / block_values) block_bytes."""
        return -(-n_elements // self.block_values) * self.block_bytes

    def matrix_bytes(self, k: int, n: int) -> int:
        """Bytes of n columns of k weights: whole blocks along k, and the groups' parameters in whole bytes.

        n ceil(k / block_values) block_bytes + ceil(n ceil(k / group_values) group_bits / 8)
        """
        parameter_bits = n * -(-k // self.group_values) * self.group_bits
        return n * self.stored_bytes(k) + -(-parameter_bits // 8)


_FLOATS = frozenset({"bf16", "fp16", "fp32", "f16", "f32", "f64"})

#: Every known format by its lower-case name: LIFE's, and ggml's types by their true blocks. The scale of an MX block
#: is 8 bits for 32 values. *Source*: OCP Microscaling Formats (MX) Specification v1.0, section 5. A group of ``int4``
#: has a bf16 scale and a 4-bit zero. *Source*: LIFE; its activations and KV carry no groups.
NUMBER_FORMATS: Mapping[str, NumberFormat] = MappingProxyType(
    {
        name: NumberFormat(name=name, block_values=n_values, block_bytes=n_bytes, **groups)
        for name, n_values, n_bytes, groups in (
            *((name.lower(), kind.block_values, kind.block_bytes, {}) for name, kind in GGML_TYPES.items()),
            *((name, 1, n_bytes, {}) for name, n_bytes in (("bf16", 2), ("fp16", 2), ("fp32", 4))),
            *(("int8", 1, 1, {}), ("int16", 1, 2, {})),
            ("int4", 2, 1, {"group_values": INT4_GROUP, "group_bits": 20}),
            *((name, 32, 33, {}) for name in ("mxfp8", "mxint8")),
        )
    }
)

#: The format that operators take where none is named, two bytes an element.
BF16 = NUMBER_FORMATS["bf16"]


def find_format(name: str) -> NumberFormat:
    """Return a format by its name in either case; any other raises QuantizationError with what is accepted."""
    found = NUMBER_FORMATS.get(name.lower())
    if found is None:
        accepted = ", ".join(NUMBER_FORMATS) + meant(name, NUMBER_FORMATS)
        raise QuantizationError(f"number format {name!r} is unknown; accepted are {accepted}")
    return found


def _cost(*, flops: int = 0, reads: int = 0, parameters: int = 0, writes: int = 0, n_dispatches: int = 1) -> OpCost:
    return OpCost(
        flops=flops,
        read_bytes=reads + parameters,
        written_bytes=writes,
        parameter_bytes=parameters,
        n_dispatches=n_dispatches,
    )


#: Operations of one element under rotary embedding: two products and a sum. *Source*: LIFE, 3h for q and for k.
ROPE_FLOPS = 3
#: Operations of one element: square, add, scale, weight. *Source*: LIFE, 4h a norm.
RMS_NORM_FLOPS = 4
#: Operations of one score: scale, mask, maximum, exponential, sum, division. *Source*: LIFE, 6 a score.
SOFTMAX_FLOPS = 6
#: Entries of the table that a piecewise-linear function looks up. *Source*: LIFE.
TABLE_ENTRIES = 256
#: Operations of one element of it: slope times x, plus the offset.
PIECEWISE_LINEAR_FLOPS = 2
#: Operations to dequantise one element: subtract the zero point, multiply by the scale.
DEQUANTIZE_FLOPS = 2
#: Elementwise steps of an adapter beside its product: the scale, and the addition to the weights.
LORA_STEPS = 2


def embedding(m: int, n_vocab: int, n_embd: int) -> OpCost:
    """Cost the lookup of m tokens in an (n_vocab, n_embd) table of bf16: all of it and a row read, m rows written.

    *Source*: LIFE, Table 1, vocab x hidden + hidden; the operation that it counts for an embedding is none of its
    totals'.
    """
    row, rows = BF16.stored_bytes(n_embd), BF16.stored_bytes(m * n_embd)
    return _cost(reads=row, parameters=BF16.matrix_bytes(n_embd, n_vocab), writes=rows)


def rope(m: int, width: int, *, table_elements: int, activations: NumberFormat = BF16) -> OpCost:
    """Cost rotary embedding of (m, width): 3 FLOPs an element; reads it and `table_elements` of bf16, writes it.

    *Source*: LIFE, 3h operations on q and on k.
    """
    n_bytes, table_bytes = activations.stored_bytes(m * width), BF16.stored_bytes(table_elements)
    return _cost(flops=ROPE_FLOPS * m * width, reads=n_bytes, parameters=table_bytes, writes=n_bytes)


def rms_norm(m: int, n: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost an RMS norm of m rows: 4mn FLOPs; reads mn and n bf16 weights, writes mn. *Source*: LIFE, 4h a token."""
    n_bytes = activations.stored_bytes(m * n)
    return _cost(flops=RMS_NORM_FLOPS * m * n, reads=n_bytes, parameters=BF16.stored_bytes(n), writes=n_bytes)


def softmax(n_rows: int, n: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost a softmax over n_rows rows of n scores: 6 FLOPs a score; reads and writes the scores. *Source*: LIFE."""
    n_bytes = activations.stored_bytes(n_rows * n)
    return _cost(flops=SOFTMAX_FLOPS * n_rows * n, reads=n_bytes, writes=n_bytes)


def elementwise(m: int, n: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost an elementwise operator over (m, n): mn FLOPs, reads 2mn, writes mn elements. *Source*: LIFE, Table 1."""
    n_bytes = activations.stored_bytes(m * n)
    return _cost(flops=m * n, reads=2 * n_bytes, writes=n_bytes)


def piecewise_linear(n_elements: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost a non-linear function by a 256-entry table: 2 FLOPs an element, reads the table. *Source*: LIFE, Table 1."""
    n_bytes, table_bytes = map(activations.stored_bytes, (n_elements, TABLE_ENTRIES))
    return _cost(flops=PIECEWISE_LINEAR_FLOPS * n_elements, reads=n_bytes, parameters=table_bytes, writes=n_bytes)


def linear(m: int, k: int, n: int, *, weights: NumberFormat, activations: NumberFormat = BF16) -> OpCost:
    """Cost a linear operator, (m, k) x (k, n): 2mkn FLOPs; reads mk + kn, writes mn elements.

    Where `weights` are quantised, this is the product alone: `dequantize_weights` comes beside it.

    *Source*: LIFE, Table 1, without the subtracted first addition, which its own totals do not subtract.
    """
    reads, writes = map(activations.stored_bytes, (m * k, m * n))
    return _cost(flops=2 * m * k * n, reads=reads, parameters=weights.matrix_bytes(k, n), writes=writes)


def dequantize_weights(k: int, n: int) -> OpCost:
    """Cost what quantised (k, n) weights add to the product: 2kn FLOPs a pass whatever m, in its dispatch.

    *Source*: LIFE, quantised linear.
    """
    return _cost(flops=DEQUANTIZE_FLOPS * k * n, n_dispatches=0)


def lora_update(k: int, n: int, rank: int) -> OpCost:
    """Cost W + s A B for a (k, n) matrix, bf16 A (k, r), B (r, n), in the dispatch of the operator that uses it.

    FLOPs 2krn for the product and kn for each of the two elementwise steps, (2r + 2)kn together; reads A and B.

    *Source*: LIFE, LoRA linear and Table 12.
    """
    parameters = BF16.matrix_bytes(k, rank) + BF16.matrix_bytes(rank, n)
    return _cost(flops=(2 * rank + LORA_STEPS) * k * n, parameters=parameters, n_dispatches=0)


def bmm(b: int, m: int, k: int, n: int, *, activations: NumberFormat, right_bytes: int) -> OpCost:
    """Cost a batched product, b x (m, k) x (k, n), whose right-hand side takes `right_bytes`.

    FLOPs 2bmkn; reads bmk elements and the right-hand side, writes bmn elements.

    *Source*: LIFE, Table 1, without the subtracted first addition.
    """
    left, writes = map(activations.stored_bytes, (b * m * k, b * m * n))
    return _cost(flops=2 * b * m * k * n, reads=left + right_bytes, writes=writes)
