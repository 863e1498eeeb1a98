"""Number formats: how many bytes n elements, or a (k, n) matrix of weights, take when stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from perfsuite.errors import QuantizationError, meant
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


# The scale of an MX block is 8 bits for 32 values. Source: OCP Microscaling Formats (MX) Specification v1.0, section 5.
_OWN = (
    NumberFormat(name="bf16", block_values=1, block_bytes=2),
    NumberFormat(name="fp16", block_values=1, block_bytes=2),
    NumberFormat(name="fp32", block_values=1, block_bytes=4),
    NumberFormat(name="int8", block_values=1, block_bytes=1),
    NumberFormat(name="int16", block_values=1, block_bytes=2),
    # A bf16 scale and a 4-bit zero a group. Source: LIFE, int4 weights. Activations and KV carry no groups there.
    NumberFormat(name="int4", block_values=2, block_bytes=1, group_values=INT4_GROUP, group_bits=20),
    NumberFormat(name="mxfp8", block_values=32, block_bytes=33),
    NumberFormat(name="mxint8", block_values=32, block_bytes=33),
)

_FLOATS = frozenset({"bf16", "fp16", "fp32", "f16", "f32", "f64"})

#: Every known format by its lower-case name: those above, and ggml's types by their true blocks.
NUMBER_FORMATS: Mapping[str, NumberFormat] = MappingProxyType(
    {
        **{
            kind.name.lower(): NumberFormat(
                name=kind.name.lower(), block_values=kind.block_values, block_bytes=kind.block_bytes
            )
            for kind in GGML_TYPES.values()
        },
        **{each.name: each for each in _OWN},
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
