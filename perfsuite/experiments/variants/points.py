"""What is varied, how far, and on which workload it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from perfsuite.expectation.graph import Settings
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.speculation import Drafting, Speculation
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import Weights

TTFT, TPOT = "ttft", "tpot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One thing that is varied."""

    #: Long where the cache is varied, for that is read then; a prompt of one chunk where chunks are.
    scenario: str
    #: What changes with it.
    latencies: tuple[str, ...]


AXES = {
    "lora": Axis(scenario="p128-g32", latencies=(TTFT, TPOT)),
    "chunk": Axis(scenario="p512-g1", latencies=(TTFT,)),
    "parallel": Axis(scenario="p32-g32", latencies=(TPOT,)),
    "kv": Axis(scenario="p128-g32-d768", latencies=(TTFT, TPOT)),
    "draft": Axis(scenario="p64-g48", latencies=(TTFT, TPOT)),
}

RANKS = (4, 16, 64, 128)
CHUNKS = (32, 64, 128, 256)
SEQUENCES = (2, 4, 8, 16)
KV_TYPES = ("f32", "q8_0", "q5_1", "q4_0")
#: Tokens of a round, and the chance of each.
SPECULATIONS = ((2, 0.8), (4, 0.8), (8, 0.8), (4, 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPoint:
    """A workload, and the plain one that it is measured beside."""

    axis: str
    setting: str
    plain: LlamaWorkload
    workload: LlamaWorkload


def variant_points(weights: Weights, draft: Weights, axes: tuple[str, ...]) -> Iterator[VariantPoint]:
    """Yield all points of the axes; `draft` is the model of a draft, beside which the text itself is one point more."""
    for axis in axes:
        plain = llama_workload(weights, find_scenario(AXES[axis].scenario))
        for setting, workload in _VARIED[axis](plain, draft):
            yield VariantPoint(axis=axis, setting=setting, plain=plain, workload=workload)


_Varied = Iterator[tuple[str, LlamaWorkload]]


def _with(workload: LlamaWorkload, **settings: object) -> LlamaWorkload:
    changed: Settings = replace(workload.settings, **settings)  # type: ignore[arg-type]
    return replace(workload, settings=changed)


def _ranks(plain: LlamaWorkload, draft: Weights) -> _Varied:
    yield from ((f"rank {rank}", _with(plain, lora_rank=rank)) for rank in RANKS)


def _chunks(plain: LlamaWorkload, draft: Weights) -> _Varied:
    yield from ((f"{n} tokens", replace(plain, n_ubatch=n)) for n in CHUNKS)


def _sequences(plain: LlamaWorkload, draft: Weights) -> _Varied:
    yield from ((f"{n} sequences", replace(plain, n_sequences=n)) for n in SEQUENCES)


def _kv_types(plain: LlamaWorkload, draft: Weights) -> _Varied:
    yield from ((name, _with(plain, type_k=name, type_v=name)) for name in KV_TYPES)


def _drafts(plain: LlamaWorkload, draft: Weights) -> _Varied:
    asked = (*((draft, *each) for each in SPECULATIONS), (None, *SPECULATIONS[1]))
    for weights, n_draft, acceptance_ratio in asked:
        speculation = Speculation(n_draft=n_draft, acceptance_ratio=acceptance_ratio)
        name = "ngram" if weights is None else weights.name
        drafting = Drafting(weights=weights, speculation=speculation)
        yield f"{name}:{n_draft}:{acceptance_ratio:g}", plain.with_draft(drafting)


_VARIED = {"lora": _ranks, "chunk": _chunks, "parallel": _sequences, "kv": _kv_types, "draft": _drafts}
