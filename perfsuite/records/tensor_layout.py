"""Where the fields of ggml's tensor are in one build of it, and what its numbers for operators and types mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from perfsuite.records.codec import Count, Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """A type of elements: a block of `block_elements` takes `block_bytes`; both are 0 of a type that ggml gave up."""

    name: str
    block_elements: Count
    block_bytes: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLayout(Plain):
    """``struct ggml_tensor`` of one build: offsets in bytes, and names in the order of ggml's enumerations."""

    ROWS: ClassVar = {"types": TensorType}

    #: The build id of the libggml-base that was asked, and ggml's own word for its version.
    build_id: str
    version: str
    tensor_bytes: Count
    type_at: Count
    ne_at: Count
    nb_at: Count
    op_at: Count
    op_params_at: Count
    flags_at: Count
    src_at: Count
    n_src: Count
    view_src_at: Count
    data_at: Count
    name_at: Count
    name_bytes: Count
    #: ``ggml_op_name`` of each operator.
    ops: tuple[str, ...]
    #: ``ggml_unary_op_name`` and ``ggml_glu_op_name``: what ``ggml_op_desc`` says of UNARY and GLU.
    unary_ops: tuple[str, ...]
    glu_ops: tuple[str, ...]
    types: tuple[TensorType, ...]

    def __post_init__(self) -> None:
        n_bytes = {"ne": 32, "nb": 32, "src": 8 * self.n_src, "view_src": 8, "data": 8, "name": self.name_bytes}
        for field in ("type", "ne", "nb", "op", "op_params", "flags", "src", "view_src", "data", "name"):
            at = getattr(self, f"{field}_at")
            if at + n_bytes.get(field, 4) > self.tensor_bytes:
                raise ValueError(f"{field}_at is {at}, of a tensor of {self.tensor_bytes} bytes")
