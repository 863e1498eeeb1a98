"""What a model-suite study compares, as plain facts; how it is written is described in docs/study.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from perfsuite.experiments.study.token_latency import LEAST_S, MOST_S

_Time = Annotated[float, Meta(ge=LEAST_S, lt=MOST_S, description=f"a time above 0: {LEAST_S:g} s to {MOST_S:g} s")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTask:
    """A task with the metric that counts as its accuracy."""

    name: str
    metric: str
    #: Accuracy of guessing, which is taken off every accuracy, the reference's too.
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLatency:
    """Seconds of a token that are known before the study."""

    prefill_s_per_token: _Time
    decode_s_per_token: _Time


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun:
    """One model in one quantisation."""

    model: str
    #: What models are grouped by, such as ``Pythia``.
    suite: str
    quantization: str
    #: Whether the model's other quantisations are compared with this one.
    is_original: bool
    #: A name of the catalogue with its quantisation, or a GGUF's path.
    weights: str
    #: Files of lm-evaluation-harness.
    accuracies: tuple[Path, ...]
    #: Where the latency comes from, if it is not measured: at most one of the two.
    latency: GivenLatency | None
    run_file: Path | None

    @property
    def name(self) -> str:
        """What the run is called: unique in a study."""
        return f"{self.model} {self.quantization}"

    @property
    def is_measured(self) -> bool:
        """Whether the study itself must measure the latency."""
        return self.latency is None and self.run_file is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """A whole study."""

    title: str
    tasks: tuple[StudyTask, ...]
    runs: tuple[StudyRun, ...]
    #: Whose accuracy is 1.
    reference: str
    reference_accuracies: tuple[Path, ...]
    #: What is measured: a prefill of each length, and `n_gen` tokens after it.
    prompt_lengths: tuple[int, ...]
    n_gen: int
    n_processes: int
    device: str
    #: None takes the physical cores.
    n_threads: int | None
