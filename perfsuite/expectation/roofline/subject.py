"""What was run for a row of a roofline: an architecture, a scenario and the engine's settings."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.workload.architecture import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A workload as words and numbers, for tables and pictures."""

    weights: str
    architecture: str
    #: None for a given file, whose types may be any mixture.
    quantization: str | None
    #: ``mha``, ``gqa`` or ``mla``.
    attention: str
    n_parameters: int
    n_layers: int
    scenario: str
    n_prompt: int
    n_gen: int
    n_depth: int
    n_threads: int
    flash_attn: bool
    type_k: str
    type_v: str

    @property
    def name(self) -> str:
        """The middle of case ids: weights, scenario, and the settings that are not the usual ones."""
        unusual = [
            *(() if self.flash_attn else ("no-flash-attn",)),
            *(() if self.type_k == self.type_v == "f16" else (f"kv-{self.type_k}-{self.type_v}",)),
            f"t{self.n_threads}",
        ]
        return f"{self.weights}/{self.scenario}/{'-'.join(unusual)}"


def subject_of(workload: LlamaWorkload, n_threads: int) -> Subject:
    """Describe a workload on so many threads."""
    architecture, scenario, settings = workload.weights.architecture, workload.scenario, workload.settings
    return Subject(
        weights=workload.weights.name,
        architecture=architecture.name,
        quantization=workload.weights.quantization,
        attention=attention_kind(architecture),
        n_parameters=architecture.n_parameters,
        n_layers=architecture.n_layers,
        scenario=scenario.name,
        n_prompt=scenario.n_prompt,
        n_gen=scenario.n_gen,
        n_depth=scenario.n_depth,
        n_threads=n_threads,
        flash_attn=settings.flash_attn,
        type_k=settings.type_k,
        type_v=settings.type_v,
    )


def attention_kind(architecture: Architecture) -> str:
    """Return how an architecture attends: through a latent vector, with shared key heads, or with one for each head."""
    if architecture.mla is not None:
        return "mla"
    return "mha" if architecture.n_kv_heads == architecture.n_heads else "gqa"
