"""What is asked for beside an architecture: a variant, and what is changed of it."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.paper.template import DEFAULT_LORA_RANK
from perfsuite.workload.variant import Variant

#: The largest counts that mean anything; their products stay within 64 bits.
_MOST = {"--lora-rank": 1 << 16, "--chunk": 1 << 20, "--batch": 1 << 12, "--tile": 1 << 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisations:
    """A variant and what is changed of it; a value that means nothing is a PerfsuiteError by its option's name."""

    #: None where a file's own tensor types, or `quantization`, say what the weights are.
    variant: Variant | None = None
    #: Weight quantisation in the variant's place, such as ``q4_k_m``.
    quantization: str | None = None
    #: Type of the KV cache in the variant's place.
    kv_type: str | None = None
    #: Rank of adapters on every matrix of a layer; None for the variant's.
    lora_rank: int | None = None
    #: Whether the adapters were added to the weights once before, and so cost nothing in a pass.
    lora_merged: bool = False
    #: Tokens of a prompt that are evaluated at once; None for what the conventions have.
    chunk: int | None = None
    #: Sequences that are generated side by side.
    n_sequences: int = 1
    #: What the prompt and the visible context are padded to a multiple of.
    tile: int = 1

    def __post_init__(self) -> None:
        """Refuse counts below 1 and beyond all use, and merging without adapters."""
        counts = {
            "--lora-rank": self.lora_rank,
            "--chunk": self.chunk,
            "--batch": self.n_sequences,
            "--tile": self.tile,
        }
        for option, value in counts.items():
            if value is not None and not 1 <= value <= _MOST[option]:
                raise PerfsuiteError(f"{option}={value}: expected an integer from 1 to {_MOST[option]}")
        if self.lora_merged and self.adapter_rank is None:
            raise PerfsuiteError("--lora-merged: there is no adapter to merge; give --lora-rank or a variant with LoRA")

    @property
    def adapter_rank(self) -> int | None:
        """Rank of the adapters, merged or not; None without any."""
        if self.lora_rank is None and self.variant is not None and self.variant.lora:
            return DEFAULT_LORA_RANK
        return self.lora_rank

    @property
    def inline_rank(self) -> int | None:
        """Rank of the adapters that run in every pass."""
        return None if self.lora_merged else self.adapter_rank
