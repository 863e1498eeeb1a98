"""``--lora-rank``, ``--parallel``, ``--draft`` and ``--mmproj``: with what they do not go together."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from perfsuite.plugin.registration import value_of

_LORA, _PARALLEL, _DRAFT, _IMAGE = "--lora-rank", "--parallel", "--draft", "--mmproj"

_ALONE, _IN_TURN, _TEXT = "runs a model alone", "follows one token after the other", "a text is followed, and no image"

Given = Callable[[argparse.Namespace], bool]


def _has(name: str) -> Given:
    return lambda option: bool(value_of(option, name))


def _is_opencl(option: argparse.Namespace) -> bool:
    return bool(option.perf_backend == "opencl")


#: What does not go together: options, another one, whether that is given, and why.
_CONFLICTS: tuple[tuple[tuple[str, ...], str, Given, str], ...] = (
    *(
        ((_LORA, _PARALLEL, _DRAFT, _IMAGE), name, _has(name), _ALONE)
        for name in ("--perf-fidelity", "--perf-overhead", "--perf-sweep")
    ),
    *(((_PARALLEL, _DRAFT), name, _has(name), _IN_TURN) for name in ("--perf-trace", "--prompts")),
    ((_PARALLEL, _DRAFT), "--backend=opencl", _is_opencl, _IN_TURN),
    ((_IMAGE,), "--perf-trace", _has("--perf-trace"), _TEXT),
    ((_IMAGE,), "--backend=opencl", _is_opencl, "images are encoded on the processor"),
)


def check_variant(option: argparse.Namespace) -> None:
    """Refuse options that do not go together; raises pytest.UsageError."""
    for names, other, is_given, why in _CONFLICTS:
        for name in names:
            if value_of(option, name) is not None and is_given(option):
                given = f"{name}={value_of(option, name)}"
                raise pytest.UsageError(f"{given}: {other}: {why}; leave out one or the other")
