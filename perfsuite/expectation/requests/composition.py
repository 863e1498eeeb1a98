"""From an architecture, its optimisations and the lengths of a request to what each of its passes costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.operators.tiling import check_positive, padded
from perfsuite.expectation.paper.operators import DEQUANTIZE_FLOPS, NUMBER_FORMATS
from perfsuite.expectation.paper.passes import DEFAULT_LORA_RANK, decode_pass, prefill_pass, template_of
from perfsuite.expectation.requests.analytic import Conventions, CostArrays, Counts, StepCosts
from perfsuite.expectation.requests.engine_passes import EnginePasses
from perfsuite.expectation.requests.subject import Optimisations, Subject, engine_request
from perfsuite.expectation.speculation import Speculation
from perfsuite.records.op_cost import COST_FIELDS, OpCost, PassCost
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.variant import Variant


class PaperPasses:
    """The passes of one architecture under one variant.

    A batch of sequences reads the parameters, dequantises weights, computes adapters and issues operators once; all
    the rest is theirs each.
    """

    def __init__(self, architecture: Architecture, optimisations: Optimisations) -> None:
        self._architecture = architecture
        self._variant = paper_variant(optimisations)
        self._lora_rank = optimisations.inline_rank or DEFAULT_LORA_RANK
        self._chunk = optimisations.chunk
        self._n_sequences = optimisations.n_sequences
        self._tile = optimisations.tile
        self._weight_flops = _dequantization_flops(architecture, self._variant)

    def prefill(self, n_prompt: int) -> PassCost:
        """Cost a prompt, at once or in chunks."""
        return self._prompt(padded(n_prompt, self._tile), 0, self._chunk)

    def decode(self, n_past: int, n_steps: int, n_tokens: int = 1) -> StepCosts:
        """Cost `n_steps` steps of `n_tokens`, the first of which sees `n_past` positions and its own.

        A step is affine in what it sees, so two of them give all exactly.
        """
        n_seen = -(-(n_past + n_tokens + np.arange(n_steps, dtype=np.int64)) // self._tile)
        first = int(n_seen[0]) * self._tile - n_tokens
        near, far = (self._step(first + more, n_tokens) for more in (0, self._tile))
        return StepCosts(
            by_operator={
                name: _line(cost, far.by_operator[name], n_seen - n_seen[0]) for name, cost in near.by_operator.items()
            }
        )

    def _step(self, n_past: int, n_tokens: int) -> PassCost:
        if n_tokens > 1:
            return self._prompt(n_tokens, n_past, None)
        cost = decode_pass(self._architecture, self._variant, n_past, lora_rank=self._lora_rank)
        return self._of_sequences(cost, 1)

    def _prompt(self, n_tokens: int, n_past: int, chunk: int | None) -> PassCost:
        cost = prefill_pass(
            self._architecture, self._variant, n_tokens, n_past=n_past, lora_rank=self._lora_rank, chunk=chunk
        )
        return self._of_sequences(cost, -(-n_tokens // (chunk or n_tokens)))

    def _of_sequences(self, cost: PassCost, n_chunks: int) -> PassCost:
        if self._n_sequences == 1:
            return cost
        once_flops = {"dequantize": self._weight_flops * n_chunks}
        if lora := cost.by_operator.get("lora"):
            once_flops["lora"] = lora.flops
        return PassCost(
            by_operator={
                name: _batched(each, self._n_sequences, once_flops.get(name, 0))
                for name, each in cost.by_operator.items()
            }
        )


def paper_variant(optimisations: Optimisations) -> Variant:
    """Return the variant with what was changed of it; weights and cache may be of any known number format."""
    variant = optimisations.variant
    if variant is None:
        raise PerfsuiteError("--variant: missing, and the conventions 'paper' need one; expected a variant's name")
    for option, value in (("--quantization", optimisations.quantization), ("--kv-type", optimisations.kv_type)):
        if value is not None and value.lower() not in NUMBER_FORMATS:
            accepted = ", ".join(NUMBER_FORMATS) + meant(value, NUMBER_FORMATS)
            raise PerfsuiteError(f"{option}={value}: unknown to the conventions 'paper'; accepted are {accepted}")
    return replace(
        variant,
        weights=optimisations.quantization or variant.weights,
        kv=optimisations.kv_type or variant.kv,
        lora=optimisations.inline_rank is not None,
    )


def _dequantization_flops(architecture: Architecture, variant: Variant) -> int:
    """Count what a pass spends on its quantised weights, however many tokens flow."""
    template = template_of(architecture, variant)
    if not template.weights.is_quantized:
        return 0
    n_weights = template.n_layers * sum(k * n for _, k, n in template.matrices)
    return DEQUANTIZE_FLOPS * (n_weights + template.n_embd * template.n_vocab)


def _batched(cost: OpCost, n_sequences: int, once_flops: int) -> OpCost:
    return OpCost(
        flops=once_flops + n_sequences * (cost.flops - once_flops),
        read_bytes=cost.parameter_bytes + n_sequences * (cost.read_bytes - cost.parameter_bytes),
        written_bytes=n_sequences * cost.written_bytes,
        parameter_bytes=cost.parameter_bytes,
        kv_read_bytes=n_sequences * cost.kv_read_bytes,
        kv_written_bytes=n_sequences * cost.kv_written_bytes,
        n_dispatches=cost.n_dispatches,
    )


def _line(near: OpCost, far: OpCost, steps: Counts) -> CostArrays:
    return CostArrays(
        **{name: getattr(near, name) + steps * (getattr(far, name) - getattr(near, name)) for name in COST_FIELDS}
    )


_TOO_LARGE = "a decode step costs more than 64 bits hold; expected an architecture, a batch and a context that fit"


class Passes(Protocol):
    """What counts the passes of an architecture, by either of the conventions."""

    def prefill(self, n_prompt: int) -> PassCost:
        """Cost a prompt, all chunks of it."""

    def decode(self, n_past: int, n_steps: int, n_tokens: int = 1) -> StepCosts:
        """Cost `n_steps` steps of `n_tokens` each, of which the first sees `n_past` positions and its own tokens.

        Each later step sees one position more.
        """


@dataclass(frozen=True, kw_only=True)
class RequestCost:
    """What one request costs: a prompt, and the tokens generated after it."""

    n_prompt: int
    n_gen: int
    prefill: PassCost
    #: Step i (from 0) sees the prompt, the i tokens before it and itself.
    decode: StepCosts


def passes_of(subject: Subject, optimisations: Optimisations, conventions: Conventions) -> Passes:
    """Choose who counts; what the conventions do not know is a PerfsuiteError.

    The passes remember what they counted, so that one of them should serve all lengths of a sweep.
    """
    if conventions is Conventions.PAPER:
        return PaperPasses(subject.architecture, optimisations)
    return EnginePasses(
        engine_request(subject, optimisations),
        chunk=optimisations.chunk,
        n_sequences=optimisations.n_sequences,
        tile=optimisations.tile,
    )


def compose(passes: Passes, n_prompt: int, n_gen: int) -> RequestCost:
    """Cost a request: the prefill, and every decode step from n_prompt + 1 to n_prompt + n_gen positions."""
    check_positive(n_prompt=n_prompt, n_gen=n_gen)
    return RequestCost(
        n_prompt=n_prompt, n_gen=n_gen, prefill=passes.prefill(n_prompt), decode=_decode(passes, n_prompt, n_gen)
    )


def _decode(passes: Passes, n_prompt: int, n_gen: int) -> StepCosts:
    try:
        decode = passes.decode(n_prompt, n_gen)
    except OverflowError as error:
        raise PerfsuiteError(_TOO_LARGE) from error
    if min(decode.total.flops.min(), decode.total.moved_bytes.min()) < 0:
        raise PerfsuiteError(_TOO_LARGE)
    return decode


_DRAFT = "draft_"


class SpeculativePasses:
    """The passes of a target and its draft, which both read the prompt.

    A decode step is one token's part of a round: the draft's steps one after the other, the target's pass over what
    they propose and one token more, divided by the tokens that the round is expected to give, rounded to integers.
    What the draft does is reported by kinds of its own, ``draft_gemm`` and so on.
    """

    def __init__(self, target: Passes, draft: Passes, speculation: Speculation) -> None:
        self._target = target
        self._draft = draft
        self.speculation = speculation

    def prefill(self, n_prompt: int) -> PassCost:
        """Cost a prompt that both read."""
        draft = self._draft.prefill(n_prompt).by_operator
        prefixed = {f"{_DRAFT}{name}": cost for name, cost in draft.items()}
        return PassCost(by_operator={**self._target.prefill(n_prompt).by_operator, **prefixed})

    def decode(self, n_past: int, n_steps: int, n_tokens: int = 1) -> StepCosts:
        """Cost the expected part of a round for every token generated; see `Passes.decode`."""
        n_draft, share = self.speculation.n_draft, 1.0 / self.speculation.tokens_per_round
        target = self._target.decode(n_past, n_steps, n_draft + n_tokens)
        draft = self._draft.decode(n_past, n_steps + n_draft - 1, n_tokens)
        parts = {name: _shared(cost, n_steps, 1, share) for name, cost in target.by_operator.items()}
        for name, cost in draft.by_operator.items():
            parts[f"{_DRAFT}{name}"] = _shared(cost, n_steps, n_draft, share)
        return StepCosts(by_operator=parts)


def _shared(cost: CostArrays, n_steps: int, n_times: int, share: float) -> CostArrays:
    """Add up `n_times` neighbouring steps from each on, and take a share of it."""

    def windowed(values: Counts) -> Counts:
        summed = np.zeros(n_steps, dtype=np.int64)
        for at in range(n_times):
            summed = summed + values[at : at + n_steps]
        rounded: Counts = np.rint(summed * share).astype(np.int64)
        return rounded

    return CostArrays(**{name: windowed(getattr(cost, name)) for name in COST_FIELDS})
