"""A small study whose numbers are easy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.experiments.study.plan_file import StudyPlan, StudyRun, StudyTask, TokenLatency

#: By name of the run: accuracy in arc_easy, seconds of an input and of an output token.
NUMBERS = {
    "small f16": (0.40, 1.0, 4.0),
    "small q4_0": (0.36, 1.25, 2.0),
    "large f16": (0.50, 4.0, 16.0),
    "large q4_0": (0.48, 5.0, 8.0),
}
REFERENCE = 0.80


def accuracies(folder: Path, name: str, accuracy: float, metric: str = "acc,none") -> Path:
    path = folder / f"{name.replace(' ', '-')}.json"
    path.write_text(json.dumps({"results": {"arc_easy": {metric: accuracy}}}))
    return path


def study_run(folder: Path, name: str) -> StudyRun:
    model, _, quantization = name.partition(" ")
    return StudyRun(
        model=model,
        suite=f"{model}s",
        quantization=quantization,
        is_original=quantization == "f16",
        weights=f"smollm2-135m-l2-{quantization}",
        accuracies=(accuracies(folder, name, NUMBERS[name][0]),),
        latency=None,
        run_file=None,
    )


@pytest.fixture
def plan(tmp_path: Path) -> StudyPlan:
    return StudyPlan(
        title="A small study",
        tasks=(StudyTask(name="arc_easy", metric="acc", chance=0.0),),
        runs=tuple(study_run(tmp_path, name) for name in NUMBERS),
        reference="ref",
        reference_accuracies=(accuracies(tmp_path, "ref", REFERENCE),),
        prompt_lengths=(8, 16, 8),
        n_gen=4,
        n_processes=3,
        device="host",
        n_threads=2,
    )


@pytest.fixture
def latencies() -> dict[str, TokenLatency]:
    return {
        name: TokenLatency(prefill_samples_s=(prefill_s,), decode_samples_s=(decode_s,), source="given")
        for name, (_, prefill_s, decode_s) in NUMBERS.items()
    }
