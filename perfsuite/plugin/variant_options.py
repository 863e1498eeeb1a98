"""``--lora-rank``, ``--parallel`` and ``--draft``: what a run does beside a model alone."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.graph import refusal
from perfsuite.expectation.speculation import Drafting, Speculation, check_vocabularies
from perfsuite.plugin.option_table import NGRAM, value_of
from perfsuite.workload.weights import resolve

_LORA, _PARALLEL, _DRAFT = "--lora-rank", "--parallel", "--draft"

_DRAFT_FORM = re.compile(r"(?P<model>.+?)(?::(?P<n_draft>\d+)(?::(?P<acceptance>\d*\.?\d+))?)?")

#: As llama.cpp has it at most. *Source*: ``LLAMA_MAX_SEQ`` in ``src/llama-cparams.h`` of llama-cpp-python 0.3.36.
_MOST_SEQUENCES = 256
_MOST_RANK = 1 << 16

Given = Callable[[argparse.Namespace], bool]


def _has(name: str) -> Given:
    return lambda option: bool(value_of(option, name))


#: What does not go together with what: options, another one, whether that is given, and why.
_CONFLICTS: tuple[tuple[tuple[str, ...], str, Given, str], ...] = (
    *(
        ((_LORA, _PARALLEL, _DRAFT), name, _has(name), "runs a model alone")
        for name in ("--perf-fidelity", "--perf-overhead", "--perf-sweep")
    ),
    *(
        ((_PARALLEL, _DRAFT), name, _has(name), "follows one token after the other")
        for name in ("--perf-trace", "--prompts")
    ),
    (
        *((_PARALLEL, _DRAFT), "--backend=opencl"),
        *(lambda option: option.backend == "opencl", "follows one token after the other"),
    ),
    ((_DRAFT,), _PARALLEL, _has(_PARALLEL), "a draft runs ahead of one sequence"),
)


def check_variant(option: argparse.Namespace) -> None:
    """Refuse options that do not go together; raises pytest.UsageError."""
    for names, other, is_given, why in _CONFLICTS:
        for name in names:
            if value_of(option, name) is not None and is_given(option):
                given = f"{name}={value_of(option, name)}"
                raise pytest.UsageError(f"{given}: {other}: {why}; leave out one or the other")


def with_variant(workload: LlamaWorkload, option: argparse.Namespace, models_dir: Path) -> LlamaWorkload:
    """Return the workload with what the options ask for beside the model.

    Raises pytest.UsageError: a value is out of range; PerfsuiteError: a model is not known.
    """
    for name, add in ((_LORA, _with_adapter), (_PARALLEL, _with_sequences)):
        if (value := value_of(option, name)) is not None:
            workload = add(workload, f"{name}={value}", value)
    if option.draft is not None:
        workload = _with_draft(workload, option.draft, models_dir)
    n_tokens = workload.step(1).n_tokens
    if n_tokens > workload.n_ubatch:
        at_once = f"--ubatch-size={workload.n_ubatch}"
        raise pytest.UsageError(f"{at_once}: a decode step has {n_tokens} tokens, expected {n_tokens} or more")
    return workload


def _with_adapter(workload: LlamaWorkload, given: str, rank: int) -> LlamaWorkload:
    _check_range(given, rank, 1, _MOST_RANK)
    settings = replace(workload.settings, lora_rank=rank)
    if reason := refusal(workload.weights.architecture, settings):
        raise pytest.UsageError(f"{given}: {workload.weights.name}: {reason}")
    return replace(workload, settings=settings)


def _with_sequences(workload: LlamaWorkload, given: str, n_sequences: int) -> LlamaWorkload:
    _check_range(given, n_sequences, 1, _MOST_SEQUENCES)
    return replace(workload, n_sequences=n_sequences)


def _with_draft(workload: LlamaWorkload, text: str, models_dir: Path) -> LlamaWorkload:
    drafting = _drafting(text, models_dir)
    if not workload.scenario.n_gen:
        raise pytest.UsageError(f"--draft={text}: {workload.scenario.name} generates nothing; expected tokens to draft")
    if drafting.weights is not None:
        check_vocabularies(text, drafting.weights.architecture, workload.weights.architecture)
    return workload.with_draft(drafting)


def _drafting(text: str, models_dir: Path) -> Drafting:
    form = _DRAFT_FORM.fullmatch(text)
    usual = Speculation()
    try:
        assert form is not None
        speculation = Speculation(
            n_draft=int(form["n_draft"] or usual.n_draft),
            acceptance_ratio=float(form["acceptance"] or usual.acceptance_ratio),
        )
    except (AssertionError, PerfsuiteError):
        accepted = "MODEL|ngram[:TOKENS[:ACCEPTANCE]] with 1 to 64 tokens and a share from 0 to 1"
        raise pytest.UsageError(f"--draft={text}: expected {accepted}, such as smollm2-135m-q8_0:4:0.7") from None
    weights = None if form["model"] == NGRAM else resolve(form["model"], cache_dir=models_dir)
    return Drafting(weights=weights, speculation=speculation)


def _check_range(given: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise pytest.UsageError(f"{given}: expected an integer from {least} to {most}")
