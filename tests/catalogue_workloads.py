"""Weights and workloads of the catalogue, none of which are written: what expectations are made for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import Weights, resolve


def catalogue_weights(name: str) -> Weights:
    return resolve(name, cache_dir=Path("/nowhere"))


def catalogue_workload(name: str = "smollm2-135m-l2-q8_0", scenario: str = "siso", **settings: Any) -> LlamaWorkload:
    """Describe a workload of the catalogue, with the engine's usual settings except those that are given."""
    return llama_workload(catalogue_weights(name), find_scenario(scenario), **settings)
