"""One forward pass under the paper's conventions: a prompt, a chunk of it, or one decode step."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from types import MappingProxyType

from perfsuite.expectation.op_cost import NO_COST, OpCost
from perfsuite.expectation.operators.chunks import chunk_bounds
from perfsuite.expectation.operators.dimensions import check_count, check_positive
from perfsuite.expectation.operators.lookup import embedding
from perfsuite.expectation.operators.norms import rms_norm
from perfsuite.expectation.paper.attention_block import attention_block
from perfsuite.expectation.paper.feed_forward_block import feed_forward_block
from perfsuite.expectation.paper.operator_key import OperatorKey, Operators
from perfsuite.expectation.paper.projection import projection
from perfsuite.expectation.paper.rotary import RopeReach
from perfsuite.expectation.paper.template import DEFAULT_LORA_RANK, Matrix, Template, template_of
from perfsuite.expectation.pass_cost import PassCost
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.variant import Variant


def prefill_pass(
    architecture: Architecture,
    variant: Variant,
    n_prompt: int,
    *,
    n_past: int = 0,
    lora_rank: int = DEFAULT_LORA_RANK,
    chunk: int | None = None,
) -> PassCost:
    """Cost a prompt of N tokens after `n_past` positions, at once or in chunks.

    Every token attends to all positions, N^2 scores of a head for a prompt at once; a chunk attends to those before it
    and itself. The output matrix runs on every token.

    Raises ArchitectureError: the architecture has experts, or a count is out of its range.
    """
    check_positive(n_prompt=n_prompt)
    template = template_of(architecture, variant, lora_rank)
    bounds = chunk_bounds(n_prompt, n_prompt if chunk is None else chunk, n_past)
    return pass_of(chain.from_iterable(pass_operators(template, m, past, RopeReach.TOKENS) for past, m in bounds))


def decode_pass(
    architecture: Architecture,
    variant: Variant,
    n_past: int,
    *,
    lora_rank: int = DEFAULT_LORA_RANK,
    rope: RopeReach = RopeReach.WHOLE_TABLE,
) -> PassCost:
    """Cost one token that attends to `n_past` earlier positions and itself.

    `rope` is `WHOLE_TABLE` as in the paper's Tables 7 and 10, or `PER_TOKEN` as in Table 9. Raises as `prefill_pass`.
    """
    check_count(n_past=n_past)
    return pass_of(pass_operators(template_of(architecture, variant, lora_rank), 1, n_past, rope))


def pass_of(operators: Iterable[tuple[OperatorKey, OpCost]]) -> PassCost:
    """Add operators up by their kind."""
    by_operator: dict[str, OpCost] = {}
    for key, cost in operators:
        by_operator[key.value] = by_operator.get(key.value, NO_COST) + cost
    return PassCost(by_operator=MappingProxyType(by_operator))


def pass_operators(template: Template, m: int, n_past: int, reach: RopeReach) -> Operators:
    """List the operators of a pass; layers are alike, so each operator of one is listed once, times the layers."""
    yield OperatorKey.EMBEDDING, embedding(m, template.n_vocab, template.n_embd)
    for key, cost in layer_operators(template, m, n_past, reach):
        yield key, cost * template.n_layers
    yield OperatorKey.NORM, rms_norm(m, template.n_embd, activations=template.activations)
    output = Matrix(name="lm_head", k=template.n_embd, n=template.n_vocab)
    yield from projection(template, m, output, adapted=False)


def layer_operators(template: Template, m: int, n_past: int, reach: RopeReach) -> Operators:
    """List the operators of one layer."""
    yield from attention_block(template, m, n_past, reach)
    yield from feed_forward_block(template, m)
