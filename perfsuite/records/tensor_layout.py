"""Where the fields of ggml's tensor are in one build of it, and what its numbers for operators and types mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfsuite.records.codec import rebuilt, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """A type of elements: a block of `block_elements` takes `block_bytes`."""

    name: str
    block_elements: int
    block_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLayout:
    """``struct ggml_tensor`` of one build: offsets in bytes, and names in the order of ggml's enumerations."""

    #: The build id of the libggml-base that was asked, and ggml's own word for its version.
    build_id: str
    version: str
    tensor_bytes: int
    type_at: int
    ne_at: int
    nb_at: int
    op_at: int
    op_params_at: int
    flags_at: int
    src_at: int
    n_src: int
    view_src_at: int
    data_at: int
    name_at: int
    name_bytes: int
    #: ``ggml_op_name`` of each operator.
    ops: tuple[str, ...]
    #: ``ggml_unary_op_name`` and ``ggml_glu_op_name``: what ``ggml_op_desc`` says of UNARY and GLU.
    unary_ops: tuple[str, ...]
    glu_ops: tuple[str, ...]
    types: tuple[TensorType, ...]

    def to_plain(self) -> dict[str, Any]:
        """Return dicts, lists, numbers and strings."""
        plain: dict[str, Any] = to_plain(self, rows=["types"])
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> TensorLayout:
        """Rebuild from `to_plain`."""
        return rebuilt(plain, cls, types=TensorType)
