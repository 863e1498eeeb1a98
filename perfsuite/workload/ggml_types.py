"""The ggml types that a tensor in a GGUF can have, with their block sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from perfsuite.errors import QuantizationError


@dataclass(frozen=True, slots=True, kw_only=True)
class GgmlType:
    """One ggml type: a row is a whole number of blocks, each of a fixed number of values and bytes."""

    #: Upper-case name, as in ggml's enumeration.
    name: str
    #: Number in the file format.
    number: int
    block_values: int
    block_bytes: int
    #: Whether llama.cpp runs matrices of this type; the rest occur in files only as indices or intermediates.
    is_weight: bool

    def fits(self, n_values: int) -> bool:
        """Whether a row of this many values is a whole number of blocks."""
        return n_values % self.block_values == 0

    def row_bytes(self, n_values: int) -> int:
        """Return the bytes of a row, or raise QuantizationError where it is not a whole number of blocks."""
        if not self.fits(n_values):
            raise QuantizationError(f"{n_values} values in a row are no multiple of {self.name}'s {self.block_values}")
        return n_values // self.block_values * self.block_bytes


# name, number, values and bytes of a block. Source: ggml/include/ggml.h and ggml/src/ggml-common.h of llama.cpp.
_WEIGHTS = (
    ("F32", 0, 1, 4),
    ("F16", 1, 1, 2),
    ("BF16", 30, 1, 2),
    ("Q8_0", 8, 32, 34),
    ("Q5_0", 6, 32, 22),
    ("Q5_1", 7, 32, 24),
    ("Q4_0", 2, 32, 18),
    ("Q4_1", 3, 32, 20),
    ("Q2_0", 42, 64, 18),
    ("Q1_0", 41, 128, 18),
    ("Q6_K", 14, 256, 210),
    ("Q5_K", 13, 256, 176),
    ("Q4_K", 12, 256, 144),
    ("Q3_K", 11, 256, 110),
    ("Q2_K", 10, 256, 84),
    ("IQ4_NL", 20, 32, 18),
    ("IQ4_XS", 23, 256, 136),
    ("IQ3_S", 21, 256, 110),
    ("IQ3_XXS", 18, 256, 98),
    ("IQ2_S", 22, 256, 82),
    ("IQ2_XS", 17, 256, 74),
    ("IQ2_XXS", 16, 256, 66),
    ("IQ1_M", 29, 256, 56),
    ("IQ1_S", 19, 256, 50),
    ("TQ2_0", 35, 256, 66),
    ("TQ1_0", 34, 256, 54),
    ("MXFP4", 39, 32, 17),
    ("NVFP4", 40, 64, 36),
)
_OTHERS = (
    ("Q8_1", 9, 32, 36),
    ("Q8_K", 15, 256, 292),
    ("I8", 24, 1, 1),
    ("I16", 25, 1, 2),
    ("I32", 26, 1, 4),
    ("I64", 27, 1, 8),
    ("F64", 28, 1, 8),
)


#: All known types by upper-case name.
GGML_TYPES: Mapping[str, GgmlType] = MappingProxyType(
    {
        name: GgmlType(name=name, number=number, block_values=values, block_bytes=n_bytes, is_weight=rows is _WEIGHTS)
        for rows in (_WEIGHTS, _OTHERS)
        for name, number, values, n_bytes in rows
    }
)

#: The same by their number in the file.
GGML_TYPES_BY_NUMBER: Mapping[int, GgmlType] = MappingProxyType({each.number: each for each in GGML_TYPES.values()})


def is_quantized(name: str) -> bool:
    """Whether a type, by its name in either case, holds blocks of small integers with shared scales."""
    ggml_type = GGML_TYPES.get(name.upper())
    return ggml_type is not None and ggml_type.block_values > 1
