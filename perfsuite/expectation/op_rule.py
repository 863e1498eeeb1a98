"""All that the suite knows of one ggml operator, and the rules that several operators share.

FLOPs are of the operator's definition in ``ggml/src/ggml.c``, and of what is computed for it in ``ops.cpp`` and
``unary-ops.cpp`` in ``ggml/src/ggml-cpu`` of llama-cpp-python 0.3.36, by the convention that `op_rules` states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import prod

from perfsuite.expectation.graphs.operator import Batch, Operator, TensorShape, row_bytes, shape
from perfsuite.expectation.thread_rules import ThreadRule, all_rows, by_rows
from perfsuite.expectation.timing.operator_shape import SCALED_ROWS, OperatorShape

Sources = Sequence[TensorShape]
#: FLOPs of an operator, or the bytes that it writes, from its output and its sources.
CountRule = Callable[[TensorShape, Sources], int]
#: The bytes that are read of each source.
ReadsRule = Callable[[TensorShape, Sources], tuple[int, ...]]
#: The sizes of an operator of a graph, from it and its batch.
AxesRule = Callable[[Operator, Batch], OperatorShape]
#: The terms of its time beside the dispatch, from its sizes, the rows of activations and the threads.
FeatureRule = Callable[[OperatorShape, int, int], tuple[float, ...]]
#: The output and the sources of an operator that stands alone; sizes that it does not have are 1.
AloneRule = Callable[[OperatorShape], tuple[TensorShape, Sources]]
#: Whole numbers and floats by which it is told how to work there, in the order of its ``op_params``.
ParamsRule = Callable[[OperatorShape], Sequence[int | float]]

#: What stands in for an operator that was not measured, where its row says nothing else.
ELSE = "MUL"


def per_element(flops: int) -> CountRule:
    """Return the rule of work on each element of the output."""
    return lambda output, _: flops * output.n_elements


def per_source_element(flops: int) -> CountRule:
    """Return the rule of work on each element of the first source, such as a sum."""
    return lambda _, sources: flops * sources[0].n_elements


def all_read(_: TensorShape, sources: Sources) -> tuple[int, ...]:
    """Read all sources whole, at their stored size."""
    return tuple(source.n_bytes for source in sources)


def first_read(_: TensorShape, sources: Sources) -> tuple[int, ...]:
    """Read the first source alone, such as where ggml lists the destination as a source too."""
    return (sources[0].n_bytes, *(0 for _ in sources[1:]))


def first_unread(_: TensorShape, sources: Sources) -> tuple[int, ...]:
    """Read all but the first source, of which the shape alone is of use."""
    return (0, *(source.n_bytes for source in sources[1:]))


def rows_bytes(of: TensorShape, n_rows: int) -> int:
    """Return the stored bytes of some rows of a tensor."""
    return row_bytes(of.type, of.ne[0]) * n_rows


def distinct_experts(n_experts: int, n_used: int, n_tokens: int) -> float:
    """Return how many experts a batch touches if each token draws its own at random.

    ``E (1 - (1 - u / E)^n)`` for `n` tokens that are each routed to `u` of `E` experts, all equally likely. It is `u`
    for one token, exactly, and never above ``min(E, n u)``. Real routers prefer some experts, so a batch reads fewer;
    which ones is not known from shapes. A token that chooses more experts than there are reads all of them.
    """
    return n_experts * (1.0 - (1.0 - min(n_used, n_experts) / max(1, n_experts)) ** n_tokens)


def experts_read(n_experts: int, n_used: int, n_tokens: int) -> int:
    """Return how many of `n_experts` a batch reads: the expected number of distinct ones, rounded."""
    return round(distinct_experts(n_experts, n_used, n_tokens))


def sized(operator: Operator, type_name: str = "f32", *, n_inner: int, n_tokens: int, **sizes: int) -> OperatorShape:
    """Return the sizes of an operator; of an empty one those of the least that there is."""
    least = {"n_inner": max(1, n_inner), "n_tokens": max(1, n_tokens)}
    return OperatorShape(op=operator.op, type=type_name, **least, **sizes)


def token_rows(operator: Operator, batch: Batch) -> OperatorShape:
    """Take an operator as work on the elements of a token."""
    output, sources = operator.output, operator.sources
    is_scaled = operator.op == "MUL" and len(sources) > 1 and sources[1].ne[0] == 1 < output.ne[0]
    n_rows = max(1, min(batch.n_tokens, prod(output.ne[1:])))  # fewer than tokens where only some give logits
    found = sized(operator, n_inner=output.n_elements // n_rows, n_tokens=n_rows)
    return replace(found, op=SCALED_ROWS) if is_scaled else found


def every_row(operator: Operator, _: Batch) -> OperatorShape:
    """Take each row for itself; what a norm does between the rows of a tensor is all the same."""
    return sized(operator, n_inner=operator.output.ne[0], n_tokens=all_rows(operator))


def source_rows(operator: Operator, _: Batch) -> OperatorShape:
    """Take each row that is summed, sorted or searched for itself, and count what is kept of it."""
    ne = operator.sources[0].ne
    return sized(operator, n_inner=ne[0], n_tokens=prod(ne[1:]), n_used=operator.output.ne[0])


def row_terms(of: OperatorShape, _: int, __: int) -> tuple[float, ...]:
    """The elements of a row, and their power of 1.5, by which rows of many bytes leave the caches."""
    return (of.n_inner, of.n_inner**1.5)


def head_terms(of: OperatorShape, _: int, __: int) -> tuple[float, ...]:
    """The elements over all heads."""
    return (max(1, of.n_heads) * of.n_inner,)


def chosen_terms(of: OperatorShape, _: int, __: int) -> tuple[float, ...]:
    """The elements over all that a token chose."""
    return (max(1, of.n_used) * of.n_inner,)


def f32(*ne: int) -> TensorShape:
    """Return a tensor of 32-bit floats."""
    return shape("f32", *ne)


def i32(*ne: int) -> TensorShape:
    """Return a tensor of whole numbers, such as rows or places."""
    return shape("i32", *ne)


def rows_with(second: Callable[[OperatorShape], Sources] | None = None) -> AloneRule:
    """Return the rule of work on rows, beside which stand further operands: rows alike unless others are given."""

    def rule(of: OperatorShape) -> tuple[TensorShape, Sources]:
        row = f32(of.n_inner, of.n_heads, of.n_tokens)
        return row, (row, *((row,) if second is None else second(of)))

    return rule


#: Rows that are made of rows alike.
unary = rows_with(lambda _: ())


def made_of_rows(output: Callable[[OperatorShape], TensorShape]) -> AloneRule:
    """Return the rule of what is summed, sorted or searched in rows."""
    return lambda of: (output(of), (f32(of.n_inner, of.n_tokens),))


def params(*values: float) -> ParamsRule:
    """Return the rule of parameters that no size decides."""
    return lambda _: values


@dataclass(frozen=True, slots=True)
class OpRule:
    """What is known of one operator."""

    #: As ``ggml_op_desc`` spells it, or what the suite calls it: ``RMS_NORM+MUL`` is what the CPU computes as one.
    name: str
    _: KW_ONLY
    #: What a forecast calls it, where its role says no more; see `operator_kinds`.
    kind: str
    flops: CountRule = lambda _, __: 0
    reads: ReadsRule = all_read
    written: CountRule = lambda output, _: output.n_bytes
    #: The source that can be a parameter of the model, where only one is; a recorded graph says it of each.
    weight_source: int = 0
    #: The source that it writes into and does not read, such as the KV cache.
    destination: int | None = None
    #: The source whose type decides the fastest arithmetic: fused attention lists its queries first.
    typed_source: int = 0
    #: None where it is not known how threads share it.
    threads: ThreadRule | None = None
    axes: AxesRule = token_rows
    features: FeatureRule = row_terms
    #: Its tensors where it stands alone; None where nothing measures it so.
    alone: AloneRule | None = None
    #: What it is told there beside its tensors.
    params: ParamsRule = lambda _: ()
    #: Which measured operator stands in for it where it was not measured itself.
    stand_in: str = ELSE
    #: Whether its output may take over the memory of a source of the same shape.
    in_place: bool = False

    def tensors_alone(self, of: OperatorShape) -> tuple[TensorShape, Sources]:
        """Return the output and the sources of such an operator alone; of two operands where no more is known."""
        return (self.alone or rows_with())(with_least_sizes(of))


def with_least_sizes(of: OperatorShape) -> OperatorShape:
    """Return the sizes with 1 for each that an operator does not have."""
    names = ("n_outer", "n_heads", "n_kv_heads", "n_experts", "n_used")
    return replace(of, **{name: max(1, getattr(of, name)) for name in names})


ALL_ROWS = by_rows(all_rows)
SECOND_DIMENSION = by_rows(lambda operator: operator.output.ne[1])
THIRD_DIMENSION = by_rows(lambda operator: operator.output.ne[2])
ELEMENTS = by_rows(lambda operator: operator.output.n_elements)
ON_ONE_THREAD = by_rows(lambda _: 1)
