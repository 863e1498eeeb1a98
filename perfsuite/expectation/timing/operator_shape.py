"""The sizes by which one ggml operator is measured alone, and found again within a graph."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.errors import MeasurementError

#: A product of rows with one number each, which the engine computes element by element.
SCALED_ROWS = "MUL/scalar"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorShape:
    """One operator as a unit test knows it; a size that it does not have is 0."""

    #: As a graph names it, such as ``MUL_MAT`` or ``RMS_NORM+MUL``.
    op: str
    #: ggml type of the parameters or of the KV cache, in lower case; ``f32`` where there is neither.
    type: str
    #: Elements of a row: of the weights, of a norm, of an attention head, of the scores.
    n_inner: int
    #: Rows of the weights.
    n_outer: int = 0
    #: Rows of activations: tokens, or tokens times heads where each head has a row of its own.
    n_tokens: int = 1
    n_heads: int = 0
    n_kv_heads: int = 0
    #: Positions that the KV cache held before these tokens.
    n_past: int = 0
    n_experts: int = 0
    #: Experts that each token is routed to.
    n_used: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that no operator has."""
        for name in ("n_inner", "n_tokens"):
            if getattr(self, name) < 1:
                raise MeasurementError(f"operator {self.op}: {name} is {getattr(self, name)}, expected 1 or more")
        for name in ("n_outer", "n_heads", "n_kv_heads", "n_past", "n_experts", "n_used"):
            if getattr(self, name) < 0:
                raise MeasurementError(f"operator {self.op}: {name} is {getattr(self, name)}, expected 0 or more")
