"""Every option, ini value and marker of the plugin, as pytest's help shows them.

pytest loads this in each project where the suite is installed, so it imports nothing of the suite: lists of names are
written out, and a test holds them against what the suite knows.
"""

from __future__ import annotations

import argparse
from typing import Any

import pytest

#: What the suite's options are called together.
GROUP = "perfsuite"

MARKER = "perf"
MARKER_LINE = f"{MARKER}(margin): the change that passes in this test, as a ratio; --perf-margin overrides it"

DEFAULT_MODEL = "smollm2-135m-q8_0"
DEFAULT_SCENARIO = "siso"
DEFAULT_BUDGET = "90s"
DEFAULT_CALIBRATION = "quick"
DEFAULT_FARM_WAIT = "1h"
DEFAULT_PLANNED_PAIRS = 20
DEFAULT_RESOLUTION_RATIO = 0.30
DEFAULT_STEP_SHARE_RATIO = 0.002
DEFAULT_SHAPE_PROFILE = "default"

SCENARIOS = ("siso", "liso", "silo", "lilo", "siso-long", "liso-long", "silo-long", "lilo-long")
SWEEPS = ("scenario", "length", "depth", "precision", "moe", "attention", "kv", "flash", "threads")
SHAPE_OPERATIONS = ("gemm", "bmm", "gemv", "attention")
SHAPE_SUBJECTS = ("tiled", "ggml-cpu", "ggml-opencl")
SHAPE_TYPES = ("f32", "f16", "q8_0", "q4_k", "q4_0")
SHAPE_PROFILES = {
    "quick": "500 shapes a hunt, 60 s for all",
    "default": "500 shapes a hunt, 10 min for all",
    "nightly": "2000 shapes a hunt, 240 min for all",
}

#: The settings of an old side.
AGAINST_ARGUMENTS = "threads=N, ubatch=N, flash_attn=0|1, type_k=TYPE, type_v=TYPE"


def _row(help_text: str, **settings: Any) -> dict[str, Any]:
    return {"help": help_text, **settings}


_SWITCH = {"action": "store_true"}

#: What `addoption` takes of each option, in the order of the help.
OPTIONS: dict[str, dict[str, Any]] = {
    "--device": _row("run the performance cases on a device: host, or another of 'perfsuite devices'", metavar="NAME"),
    "--model": _row(
        f"a GGUF file, or architecture-quantisation from the catalogue (default: the device's, else {DEFAULT_MODEL})",
        metavar="PATH|NAME",
    ),
    "--scenario": _row(
        f"{', '.join(SCENARIOS)}, or p<prompt>-g<generated> (default {DEFAULT_SCENARIO})",
        metavar="NAME",
        default=DEFAULT_SCENARIO,
    ),
    "--n-prompt": _row("tokens of the prompt, instead of the scenario's (llama-bench's -p)", type=int, metavar="N"),
    "--n-gen": _row("tokens that are generated (llama-bench's -n)", type=int, metavar="N"),
    "--n-depth": _row("tokens that are in the cache before (llama-bench's -d)", type=int, metavar="N"),
    "--ubatch-size": _row("tokens that are evaluated at once (llama-bench's -ub; default 512)", type=int, metavar="N"),
    "--cache-type-k": _row("type of the keys in the cache (llama-bench's -ctk; default f16)", metavar="TYPE"),
    "--cache-type-v": _row("type of the values in the cache (llama-bench's -ctv; default f16)", metavar="TYPE"),
    "--lora-rank": _row("rank of a synthetic LoRA adapter beside every matrix of the layers", type=int, metavar="N"),
    "--parallel": _row("sequences that are generated side by side, a token of each in one step", type=int, metavar="N"),
    "--draft": _row(
        "speculative decoding: a draft, or ngram, the tokens that it proposes in a round (default 4), and the "
        "chance that each passes (default 0.8), such as smollm2-135m-q8_0:4:0.7",
        metavar="MODEL|ngram[:TOKENS[:ACCEPTANCE]]",
    ),
    "--mmproj": _row(
        "the projector of a vision model, which encodes an image of random pixels before each prompt: a GGUF file, or "
        "encoder-quantisation from the catalogue, such as clip-vit-l14-336-f16",
        metavar="PATH|NAME",
    ),
    "--prompts": _row(
        "prompts that each process runs in turn, such as 'perfsuite prompts' writes; the scenario says how many "
        "tokens follow each",
        metavar="FILE",
    ),
    "--threads": _row("threads of the engine (default: physical cores)", type=int, metavar="N"),
    "--backend": _row("llama.cpp backend (default cpu)", choices=("cpu", "opencl"), default="cpu"),
    "--baseline": _row("stored baselines (default compare)", choices=("compare", "record", "off"), default="compare"),
    "--baseline-dir": _row("where baselines lie (default: <rootdir>/baselines)", metavar="DIR"),
    "--perf-sweep": _row(
        f"place series of workloads under the device's roofline: {', '.join(SWEEPS)}, all", metavar="NAME,.."
    ),
    "--perf-long": _row("sweep lengths and sizes of real use, which take hours", **_SWITCH),
    "--perf-fidelity": _row(
        "hold the suite's own timings against an independent tracer and kernel duplication", **_SWITCH
    ),
    "--perf-overhead": _row("measure what recorders cost, alone and together", **_SWITCH),
    "--perf-trace": _row(
        "trace a run, and judge balance of threads, growth of attention, linearity of products, reuse of experts",
        **_SWITCH,
    ),
    "--perf-experiment": _row(
        "experiments that other packages bring (entry points of the group perfsuite.experiments), by commas",
        metavar="NAME,..",
    ),
    "--perf-shapes": _row(
        f"hunt for shapes at which an operation breaks down: {', '.join(SHAPE_OPERATIONS)}, all", metavar="NAME,.."
    ),
    "--perf-shape-subjects": _row(f"who computes: {', '.join(SHAPE_SUBJECTS)} (default tiled)", metavar="NAME,.."),
    "--perf-shape-types": _row(f"how weights are stored: {', '.join(SHAPE_TYPES)} (default all)", metavar="TYPE,.."),
    "--perf-shape-bounds": _row(
        "sizes to draw from, such as k=2:512,n=1:512 (default: those of small kernels)", metavar="NAME=LEAST:MOST,.."
    ),
    "--perf-shape-profile": _row(
        f"{'; '.join(f'{name}: {size}' for name, size in SHAPE_PROFILES.items())} (default {DEFAULT_SHAPE_PROFILE})",
        choices=tuple(SHAPE_PROFILES),
    ),
    "--perf-kernels": _row("other sources of the tiled kernels, such as a changed copy", metavar="DIR"),
    "--perf-dir": _row("where the run's files go (default: .perfsuite/runs/<id>)", metavar="DIR"),
    "--perf-report": _row("write report.html beside run.json (default on)", choices=("on", "off"), default="on"),
    "--perf-history": _row(
        "append the run to the history in a folder or on S3 (default: <rootdir>/.perfsuite/history)", metavar="DIR|off"
    ),
    "--perf-commit": _row(
        "commit that is measured, such as that of the sources a build was made from (default: of the rootdir)",
        metavar="SHA",
    ),
    "--perf-address": _row(
        "reach the device in this way instead of its profile's: local, ssh:[user@]host[:port], adb[:SERIAL], "
        "serial:[user@]/dev/PORT[,BAUD]",
        metavar="local|ssh:HOST|adb|serial:PORT",
    ),
    "--perf-plan": _row(
        "measure nothing, and write into this folder what the run would ask of a device that only runs what is "
        "uploaded; 'perfsuite bundle --plan' makes the folder",
        metavar="FOLDER",
    ),
    "--perf-plan-pairs": _row(
        f"pairs of a run that is planned (default {DEFAULT_PLANNED_PAIRS})",
        type=int,
        default=DEFAULT_PLANNED_PAIRS,
        metavar="N",
    ),
    "--perf-ingest": _row(
        "judge what came back of a folder that was planned; 'perfsuite ingest' names its options", metavar="FOLDER"
    ),
    "--perf-results": _row("where what came back lies (default: results/ in that folder)", metavar="FOLDER"),
    "--perf-wait": _row("wait for a device that somebody else has, such as 10m (default: do not)", metavar="TIME"),
    "--farm": _row(
        "borrow a board of --device's kind through labgrid's coordinator there (default: LG_COORDINATOR)",
        nargs="?",
        const="",
        metavar="HOST:PORT",
    ),
    "--farm-wait": _row(
        f"longest wait for a board that others have, such as 30m (default {DEFAULT_FARM_WAIT})",
        metavar="TIME",
        default=DEFAULT_FARM_WAIT,
    ),
    "--farm-break": _row("break the lock of a dead run on a place of the farm first", metavar="PLACE"),
    "--farm-avoid": _row(
        "places of the farm that are taken only where there is no other of the kind", metavar="PLACE,..."
    ),
    "--perf-wait-quiet": _row(
        "where others use the processors, wait so long for quiet and begin anew, such as 5m (default: go on)",
        metavar="TIME",
    ),
    "--perf-replicates": _row("fresh processes (default 10)", type=int, default=10, metavar="N"),
    "--perf-margin": _row(
        "change that passes, of all cases or by kind, such as 0.05,phase=0.02 (default: see perf_margin)",
        metavar="RATIO|KIND=RATIO,..",
    ),
    "--perf-resolution": _row(
        "coarsest resolution that still passes: where only a slowdown of more could be found, a case is undecided "
        f"(default {DEFAULT_RESOLUTION_RATIO:g}; pairs pass at 0.1 at most)",
        metavar="RATIO",
    ),
    "--perf-step-share": _row(
        "share of prefill or decode that a case of it may change by, where that is more than its margin; 0 for none "
        f"(default {DEFAULT_STEP_SHARE_RATIO:g})",
        metavar="RATIO",
    ),
    "--perf-calibrate": _row(
        "where no calibration is stored, forecast by a quick one of what the run needs, made once "
        f"(default {DEFAULT_CALIBRATION})",
        choices=("quick", "off"),
        default=DEFAULT_CALIBRATION,
    ),
    "--perf-strict": _row("fail cases that are new, invalid or undecided, too", **_SWITCH),
    "--perf-allow-undecided": _row("exit with 0 where nothing could be judged, and not with 10", **_SWITCH),
    "--perf-flash-attn": _row(
        "flash attention (default on; off where OpenCL runs on a processor, which compiles it for 20 s and more)",
        choices=("on", "off"),
    ),
    "--perf-opencl-platform": _row("OpenCL platform, by a part of its name", metavar="NAME"),
    "--perf-inject": _row("slow an operator or a phase down, to test a verdict", metavar="OP=RATIO"),
    "--against": _row("compare, in pairs, with another llama.cpp: checkout, build, prefix", metavar="DIR"),
    "--against-model": _row("compare, in pairs, with another model file", metavar="PATH|NAME"),
    "--against-args": _row(f"compare, in pairs, with settings: {AGAINST_ARGUMENTS}", metavar="NAME=VALUE .."),
    "--perf-budget": _row(
        "time to look for changes in pairs, half as long again to confirm them, such as 120s or 5m "
        f"(default {DEFAULT_BUDGET})",
        metavar="SECONDS",
    ),
}

_INI_VALUES = {
    "perf_margin": "change that passes, of all cases or by kind, such as 0.05,phase=0.02 (default: the device's, "
    "else 0.05)",
    "perf_session_spread": "spread between sessions, as a ratio (default: the device profile's)",
    "perf_resolution": "coarsest resolution that still passes; --perf-resolution overrides it "
    f"(default {DEFAULT_RESOLUTION_RATIO:g})",
    "perf_step_share": "share of prefill or decode that a case of it may change by; --perf-step-share overrides it "
    f"(default {DEFAULT_STEP_SHARE_RATIO:g})",
}

#: Options that say nothing without ``--perf-shapes``.
SHAPE_OPTIONS = (
    *("--perf-shape-subjects", "--perf-shape-types", "--perf-shape-bounds", "--perf-shape-profile"),
    "--perf-kernels",
)

#: Options of all runs by which a hunt for shapes may end otherwise.
_SHARED = ("--perf-opencl-platform", "--threads", "--perf-margin", "--baseline-dir")

_CONFLICT = "perfsuite: another plugin has defined {} already; if it is pytest-playwright, run with '-p no:playwright'"


def attribute_of(name: str) -> str:
    """Return the attribute that holds the value of an option, by its name on the command line."""
    return name.removeprefix("--").replace("-", "_")


def value_of(option: argparse.Namespace, name: str) -> Any:
    """Return what an option was given, by its name on the command line."""
    return getattr(option, attribute_of(name))


def given_options(option: argparse.Namespace) -> tuple[str, ...]:
    """Return the options by which a hunt for shapes is repeated, as they were given, but for the seed."""
    values = {name: value_of(option, name) for name in ("--perf-shapes", *SHAPE_OPTIONS, *_SHARED)}
    values["--baseline"] = "off" if option.baseline == "off" else None
    return tuple(f"{name}={value}" for name, value in values.items() if value is not None)


def add_options(parser: pytest.Parser) -> None:
    """Register options and ini values."""
    group = parser.getgroup(GROUP, "performance regression of on-device LLM inference")
    known = parser.parse_known_args([])  # has a value of each option so far
    if taken := [name for name in OPTIONS if hasattr(known, attribute_of(name))]:
        raise pytest.UsageError(_CONFLICT.format(", ".join(sorted(taken))))
    for name, settings in OPTIONS.items():
        group.addoption(name, **settings)
    for name, help_text in _INI_VALUES.items():
        if name == "perf_margin":  # may have kinds
            parser.addini(name, help_text, type="string", default=None)
        else:
            parser.addini(name, help_text, type="float", default=None)
