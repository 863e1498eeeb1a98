"""How a model is asked to be run: chunks, types of the cache, an adapter, sequences side by side, a draft, an image.

Both doors have these options under the same names, and errors name them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.graph import refusal
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.speculation import Drafting, Speculation, check_vocabularies
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.model_shape import check_generates
from perfsuite.workload.projector import find_projector
from perfsuite.workload.scenario import Scenario
from perfsuite.workload.weights import Weights, resolve

#: The draft that is no model: what followed the last tokens of the text before.
NGRAM = "ngram"

_DRAFT_FORM = re.compile(r"(?P<model>.+?)(?::(?P<n_draft>\d+)(?::(?P<acceptance>\d*\.?\d+))?)?")

#: As llama.cpp has it at most. *Source*: ``LLAMA_MAX_SEQ`` in ``src/llama-cparams.h`` of llama-cpp-python 0.3.36.
_MOST_SEQUENCES = 256
_MOST_RANK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRequest:
    """The options by their names; None leaves each as it is."""

    ubatch_size: int | None = None
    cache_type_k: str | None = None
    cache_type_v: str | None = None
    lora_rank: int | None = None
    parallel: int | None = None
    draft: str | None = None
    mmproj: str | None = None

    @classmethod
    def of(cls, options: object, *, prefix: str = "") -> WorkloadRequest:
        """Read it from parsed options, of which some may not be there; their attributes have the prefix."""
        return cls(**{each.name: getattr(options, f"{prefix}{each.name}", None) for each in fields(cls)})

    def workload(self, weights: Weights, scenario: Scenario, *, flash_attn: bool, models_dir: Path) -> LlamaWorkload:
        """Return the workload that is asked for; synthetic weights beside it are kept in `models_dir`.

        Raises PerfsuiteError: a value is out of range, or a model is not known.
        """
        type_k, type_v = (_cache_type(name, getattr(self, f"cache_type_{name}")) for name in "kv")
        workload = llama_workload(weights, scenario, flash_attn=flash_attn, type_k=type_k, type_v=type_v)
        if self.ubatch_size is not None:
            workload = _with_chunks(workload, _counted("--ubatch-size", self.ubatch_size))
        if self.lora_rank is not None:
            workload = _with_adapter(workload, _counted("--lora-rank", self.lora_rank, _MOST_RANK))
        if self.parallel is not None:
            check_generates(weights.shape, f"--parallel={self.parallel}")
            workload = replace(workload, n_sequences=_counted("--parallel", self.parallel, _MOST_SEQUENCES))
        if self.draft is not None:
            workload = _with_draft(workload, self.draft, models_dir)
        if self.mmproj is not None:
            workload = replace(workload, projector=find_projector(self.mmproj, weights, cache_dir=models_dir))
        return _checked_step(workload)


def _cache_type(name: str, asked: str | None) -> str:
    if asked is not None and asked.upper() not in GGML_TYPES:
        known = (name.lower() for name, each in GGML_TYPES.items() if each.is_weight)
        told = f"is not a type of ggml's; such as f16, q8_0 or q4_0{meant(asked, known)}"
        raise PerfsuiteError(f"--cache-type-{name}={asked.lower()}: {told}")
    return "f16" if asked is None else asked.lower()


def _counted(name: str, value: int, most: int | None = None) -> int:
    if value < 1 or (most is not None and value > most):
        expected = "of 1 or more" if most is None else f"from 1 to {most}"
        raise PerfsuiteError(f"{name}={value}: expected an integer {expected}")
    return value


def _with_chunks(workload: LlamaWorkload, n_ubatch: int) -> LlamaWorkload:
    n_prompt = workload.scenario.n_prompt
    if workload.weights.embeds and n_ubatch < n_prompt:
        raise PerfsuiteError(
            f"--ubatch-size={n_ubatch}: {workload.weights.name} reads a prompt in one pass, expected {n_prompt} or more"
        )
    return replace(workload, n_ubatch=n_ubatch)


def _with_adapter(workload: LlamaWorkload, rank: int) -> LlamaWorkload:
    settings = replace(workload.settings, lora_rank=rank)
    known = workload.weights.known_architecture
    if known is not None and (reason := refusal(known, settings)):
        raise PerfsuiteError(f"--lora-rank={rank}: {workload.weights.name}: {reason}")
    return replace(workload, settings=settings)


def _with_draft(workload: LlamaWorkload, text: str, models_dir: Path) -> LlamaWorkload:
    if workload.n_sequences > 1:
        raise PerfsuiteError(
            f"--draft={text}: --parallel: a draft runs ahead of one sequence; leave out one or the other"
        )
    drafting = _drafting(text, models_dir)
    for each in filter(None, (workload.weights, drafting.weights)):
        check_generates(each.shape, f"--draft={text}")
    if not workload.scenario.n_gen:
        raise PerfsuiteError(f"--draft={text}: {workload.scenario.name} generates nothing; expected tokens to draft")
    if drafting.weights is not None:
        check_vocabularies(text, drafting.weights.shape, workload.weights.shape)
    return workload.with_draft(drafting)


def _drafting(text: str, models_dir: Path) -> Drafting:
    form, usual = _DRAFT_FORM.fullmatch(text), Speculation()
    accepted = f"MODEL|{NGRAM}[:TOKENS[:ACCEPTANCE]] with 1 to 64 tokens and a share from 0 to 1"
    refused = PerfsuiteError(f"--draft={text}: expected {accepted}, such as smollm2-135m-q8_0:4:0.7")
    if form is None:
        raise refused
    try:
        speculation = Speculation(
            n_draft=int(form["n_draft"] or usual.n_draft),
            acceptance_ratio=float(form["acceptance"] or usual.acceptance_ratio),
        )
    except PerfsuiteError:
        raise refused from None
    weights = None if form["model"] == NGRAM else resolve(form["model"], cache_dir=models_dir)
    return Drafting(weights=weights, speculation=speculation)


def _checked_step(workload: LlamaWorkload) -> LlamaWorkload:
    n_tokens = workload.step(1).n_tokens
    if n_tokens > workload.n_ubatch:
        at_once = f"--ubatch-size={workload.n_ubatch}"
        raise PerfsuiteError(f"{at_once}: a decode step has {n_tokens} tokens, expected {n_tokens} or more")
    return workload
