"""``--lora-rank``: what a run does beside a model alone."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.graph import refusal
from perfsuite.plugin.option_table import value_of

#: The options, in the order of the help.
VARIANTS = ("--lora-rank",)

#: What makes plans of its own, and runs a model alone.
_ALONE = ("--perf-fidelity", "--perf-overhead", "--perf-sweep")


def check_variant(option: argparse.Namespace) -> None:
    """Refuse options that do not go together; raises pytest.UsageError."""
    asked = [name for name in VARIANTS if value_of(option, name) is not None]
    taken = [name for name in _ALONE if value_of(option, name)]
    if asked and taken:
        given = f"{asked[0]}={value_of(option, asked[0])}"
        raise pytest.UsageError(f"{given}: {taken[0]} runs a model alone; leave out one or the other")


def with_variant(workload: LlamaWorkload, option: argparse.Namespace) -> LlamaWorkload:
    """Return the workload with what the options ask for beside the model.

    Raises pytest.UsageError: a value is out of range; PerfsuiteError: the model is of no family that is known.
    """
    if option.lora_rank is None:
        return workload
    _check_range("--lora-rank", option.lora_rank, 1 << 16)
    settings = replace(workload.settings, lora_rank=option.lora_rank)
    if reason := refusal(workload.weights.architecture, settings):
        raise pytest.UsageError(f"--lora-rank={option.lora_rank}: {workload.weights.name}: {reason}")
    return replace(workload, settings=settings)


def _check_range(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise pytest.UsageError(f"{name}={value}: expected an integer from 1 to {most}")
