"""What was recorded of llama.cpp beneath llama-cpp-python: when each token was handed out, and what passed between."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Door(str, Enum):
    """How a program in Python asks for tokens."""

    #: The functions of ``llama.h``, one by one, as ``llama_cpp.llama_cpp`` has them.
    CALLS = "calls"
    #: ``Llama.create_completion(stream=True)``, with its own sampling.
    COMPLETION = "completion"


#: From the call to the first token, and from one token to the next; a part of either is named behind it.
TTFT, ITL = "ttft", "itl"

#: A whole request, for each of its tokens.
TOKENS_PER_S = "tokens_per_s"


class Part(str, Enum):
    """What a request spends its time on."""

    TOKENIZE = "tokenize"
    BATCH = "batch"
    #: The engine's own work, with the call into it.
    DECODE = "decode"
    #: Copying the logits into an array of Python's.
    LOGITS = "logits"
    SAMPLING = "sampling"
    DETOKENIZE = "detokenize"
    #: What lies outside of all spans.
    PYTHON = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSpan:
    """One call of an entry point; such spans nest."""

    part: Part
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A prompt and what was generated, from the call until the last token was handed out."""

    door: Door
    start_ns: int
    #: When each token, or piece of text, was there for the program.
    token_ns: tuple[int, ...]
    #: In the order of their ends.
    spans: tuple[PartSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingRecord:
    """Everything that one process recorded, all times of the monotonic clock."""

    load_ns: int
    requests: tuple[Request, ...]
    span_cost_ns: int
