"""A tensor as a cost sees it: a type and dimensions, and the bytes that they take."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from perfsuite.errors import ArchitectureError
from perfsuite.workload.ggml_types import GGML_TYPES

Shape = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorShape:
    """A tensor as a cost sees it: its ggml type in lower case and its dimensions, innermost first."""

    type: str
    ne: Shape

    @property
    def n_elements(self) -> int:
        """Product of the dimensions."""
        return prod(self.ne)

    @property
    def n_bytes(self) -> int:
        """Stored size in bytes, packed."""
        return row_bytes(self.type, self.ne[0]) * prod(self.ne[1:])


def row_bytes(type_name: str, n_elements: int) -> int:
    """Return the stored bytes of a row of `n_elements` of a ggml type, such as 1.0625 bytes an element for Q8_0."""
    kind = GGML_TYPES.get(type_name.upper())
    if kind is None:
        raise ArchitectureError(f"'{type_name}' is no ggml type")
    return kind.row_bytes(n_elements)
