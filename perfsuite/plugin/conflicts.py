"""Options that do not go together, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from perfsuite.plugin.registration import value_of

_PAIRS, _OPENCL, _RECORD = "--against", "--backend=opencl", "--baseline=record"
_VARIANTS = ("--lora-rank", "--parallel", "--draft", "--mmproj")
_EXTRA = ("--perf-sweep", "--perf-fidelity", "--perf-overhead")
_FOLDERS = ("--perf-plan", "--perf-ingest")

#: Options, what none of them goes together with, and why.
_CONFLICTS: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("--perf-fidelity",), (_PAIRS,), "a pair has no ground truth"),
    (("--perf-overhead",), (_PAIRS,), "makes pairs of its own"),
    (("--perf-trace",), (_PAIRS,), "a trace is judged by expectations, not in pairs"),
    (("--perf-trace",), (_OPENCL,), "follows the processor's operators"),
    (("--perf-sweep",), (_PAIRS,), "sweeps have no old side"),
    (("--perf-sweep",), (_OPENCL,), "sweeps stand under the processor's ceilings"),
    ((_RECORD,), ("--perf-inject",), "a run that is slowed down on purpose is no reference"),
    (("--perf-address",), ("--farm",), "a farm says where its board is"),
    (("--perf-plan",), ("--perf-ingest",), "a run is planned, or ingested"),
    (("--perf-counts",), _FOLDERS, "counts here"),
    (("--perf-counts-old",), (_RECORD,), "is no baseline"),
    (("--farm",), _FOLDERS, "nothing is borrowed for a folder"),
    (("--prompts",), (*_EXTRA, "--perf-trace", _PAIRS, _OPENCL), "runs on its own"),
    (("--perf-shapes",), (_PAIRS, "--prompts"), "shapes have no old side and no prompts"),
    (_VARIANTS, _EXTRA, "runs a model alone"),
    (("--parallel", "--draft"), ("--perf-trace", "--prompts", _OPENCL), "follows one token after the other"),
    (("--mmproj",), ("--perf-trace",), "a text is followed, and no image"),
    (("--mmproj",), (_OPENCL,), "images are encoded on the processor"),
)


def refuse_conflicts(option: argparse.Namespace) -> None:
    """Refuse options that do not go together; raises pytest.UsageError."""
    for given, other, why in _met(option):
        raise pytest.UsageError(f"{given}: {other}: {why}; leave out one or the other")
    if option.perf_counts is not None and is_paired(option) and option.perf_counts_old is None:
        raise pytest.UsageError("--perf-counts: both sides of a pair are counted; name the other by --perf-counts-old")


def is_paired(option: argparse.Namespace) -> bool:
    """Whether a run has an old side of its own."""
    return any((option.perf_against, option.perf_against_model, option.perf_against_args))


def _met(option: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    for names, others, why in _CONFLICTS:
        for name in names:
            for other in others:
                if _is_given(option, name) and _is_given(option, other):
                    value = value_of(option, name.partition("=")[0])
                    is_bare = "=" in name or value in (True, "")
                    yield (name if is_bare else f"{name}={value}"), other, why


def _is_given(option: argparse.Namespace, name: str) -> bool:
    if name == _PAIRS:
        return is_paired(option)
    bare, has_value, value = name.partition("=")
    given = value_of(option, bare)
    return bool(given == value if has_value else given not in (None, False))
