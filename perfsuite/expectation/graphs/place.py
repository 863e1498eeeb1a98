"""Where operators are being written: a layer of an architecture, and how many tokens flow through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graphs.operator import Operator, TensorShape, shape
from perfsuite.expectation.graphs.request import Batch, Settings
from perfsuite.expectation.op_rules import cost_of
from perfsuite.workload.architecture import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A layer, or what lies outside the layers, with all that its operators' shapes follow from."""

    architecture: Architecture
    #: The ggml type of each tensor of the file.
    tensor_types: Mapping[str, str]
    batch: Batch
    settings: Settings
    #: Tokens that flow through here.
    n: int
    #: Layer number; None outside the layers.
    layer: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether this is the last layer, from which only the rows that give logits go on."""
        return self.layer == self.architecture.n_layers - 1

    def at_layer(self, layer: int) -> Place:
        """Return a layer, all tokens of the batch flowing."""
        return replace(self, layer=layer, n=self.batch.n_tokens)

    def after_gather(self) -> Place:
        """Return this place once the rows that give logits were gathered, which only the last layer does."""
        return replace(self, n=self.batch.n_outputs) if self.is_last else self

    def activation(self, *ne: int) -> TensorShape:
        """Return the shape of an activation, the tokens being its last dimension."""
        return shape("f32", *ne, self.n)

    def by_sequence(self, type_name: str, first: int, third: int) -> TensorShape:
        """Return a shape of attention: the tokens of a sequence second, and the sequences last."""
        n_sequences = self.batch.n_sequences
        return shape(type_name, first, self.n // n_sequences, third, n_sequences)

    def cached(self, type_name: str, first: int, second: int, third: int) -> TensorShape:
        """Return the shape of what attention reads of the caches of the batch's sequences."""
        return shape(type_name, first, second, third, self.batch.n_sequences)

    def positions(self) -> TensorShape:
        """Return the shape of the tokens' positions."""
        return shape("i32", self.n)

    def tensor_name(self, tensor: str) -> str:
        """Return a tensor's name in the file, such as ``blk.3.attn_q.weight`` for ``attn_q.weight``."""
        return tensor if self.layer is None else f"blk.{self.layer}.{tensor}"

    def weight(self, tensor: str, *ne: int) -> TensorShape:
        """Return the shape of a tensor of this place, in the type that the file has it in."""
        return self.weight_named(self.tensor_name(tensor), *ne)

    def weight_named(self, name: str, *ne: int) -> TensorShape:
        """Return the shape of a tensor by its whole name; one that the file lacks raises ArchitectureError."""
        type_name = self.tensor_types.get(name)
        if type_name is None:
            raise ArchitectureError(
                f"{self.architecture.name}: the file has no tensor {name}, which its architecture needs"
            )
        return shape(type_name, *ne)

    def operator(
        self,
        role: str,
        op: str,
        output: TensorShape,
        sources: Sequence[TensorShape],
        *,
        is_weight: bool = False,
        kv_sources: Sequence[int] = (),
    ) -> Operator:
        """Write one operator with its cost; `is_weight` and `kv_sources` are those of `cost_of`."""
        cost = cost_of(op, output, sources, is_weight=is_weight, kv_sources=kv_sources)
        return Operator(role=role, op=op, layer=self.layer, output=output, sources=tuple(sources), cost=cost)

    def unary(self, role: str, op: str, x: TensorShape) -> Operator:
        """Write an operator on each element of `x`."""
        return self.operator(role, op, x, (x,))

    def add(self, role: str, width: int) -> Operator:
        """Write the sum of two activations."""
        x = self.activation(width)
        return self.operator(role, "ADD", x, (x, x))

    def bias(self, role: str, tensor: str, width: int) -> Operator:
        """Write the addition of a bias vector."""
        x = self.activation(width)
        return self.operator(role, "ADD", x, (x, self.weight(tensor, width)), is_weight=True)
