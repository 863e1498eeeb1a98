"""Every option of pytest and of several commands, every ini value and marker, as the helps show them.

pytest loads this in each project where the suite is installed, so it imports nothing of the suite: lists of names are
written out, and a test holds them against what the suite knows.
"""

from __future__ import annotations

import re
from typing import Any

#: What each option's own name begins with.
_OWN = "--perf-"

MARKER = "perf"
MARKER_LINE = f"{MARKER}(margin): change that passes in this test, as a ratio; --perf-margin overrides it"

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

#: What `addoption` takes of each option by its shortest name, in the order of the help.
OPTIONS: dict[str, dict[str, Any]] = {
    "--device": _row("measure on this device: host, or another of 'perfsuite devices'", metavar="NAME"),
    "--model": _row(
        f"GGUF file, or ARCHITECTURE-QUANTISATION of the catalogue (default: the device's, else {DEFAULT_MODEL})",
        metavar="PATH|NAME",
    ),
    "--scenario": _row(
        f"{', '.join(SCENARIOS)}, or p<prompt>-g<generated> in tokens (default: the device's, else {DEFAULT_SCENARIO})",
        metavar="NAME",
    ),
    "--n-prompt": _row("prompt length, tokens (default: the scenario's)", type=int, metavar="N"),
    "--n-gen": _row("tokens to generate (default: the scenario's)", type=int, metavar="N"),
    "--n-depth": _row("tokens already in the KV cache (default: the scenario's)", type=int, metavar="N"),
    "--ubatch-size": _row("largest batch that is computed at once, tokens (default 512)", type=int, metavar="N"),
    "--cache-type-k": _row("type of keys in the KV cache (default f16)", metavar="TYPE"),
    "--cache-type-v": _row("type of values in the KV cache (default f16)", metavar="TYPE"),
    "--lora-rank": _row("rank of a synthetic LoRA adapter on every layer, at most 65536", type=int, metavar="N"),
    "--parallel": _row("sequences generated in one batch, at most 256", type=int, metavar="N"),
    "--draft": _row(
        "speculative decoding: draft model or ngram, tokens of a round (default 4), chance of acceptance (default 0.8)",
        metavar="MODEL|ngram[:TOKENS[:ACCEPTANCE]]",
    ),
    "--mmproj": _row(
        "projector of a vision model, which encodes a random image before each prompt", metavar="PATH|NAME"
    ),
    "--prompts": _row("prompts that each process runs in turn, as 'perfsuite prompts' writes them", metavar="FILE"),
    "--threads": _row("threads (default: physical cores)", type=int, metavar="N"),
    "--backend": _row("backend of llama.cpp (default cpu)", choices=("cpu", "opencl"), default="cpu"),
    "--baseline": _row(
        "compare with the baselines, record them, or neither (default compare)",
        choices=("compare", "record", "off"),
        default="compare",
    ),
    "--baseline-dir": _row("folder of the baselines (default: <rootdir>/baselines)", metavar="DIR"),
    "--perf-sweep": _row(
        f"also place series of workloads under the roofline: {', '.join(SWEEPS)}, all", metavar="NAME,.."
    ),
    "--perf-long": _row("sweep realistic lengths and sizes, which takes hours", **_SWITCH),
    "--perf-fidelity": _row("also check the suite's timings against independent ones", **_SWITCH),
    "--perf-overhead": _row("also measure what the recorders cost", **_SWITCH),
    "--perf-trace": _row(
        "also trace a run: balance of threads, growth of attention, linearity of products, reuse of experts", **_SWITCH
    ),
    "--perf-counts": _row(
        "also count work, exactly: instructions, bytes and allocations, of this checkout or release of llama.cpp "
        "(default: the release that perfsuite requires)",
        nargs="?",
        const="",
        metavar="LLAMA",
    ),
    "--perf-counts-old": _row("compare the counts with those of this one, not with the baseline", metavar="LLAMA"),
    "--perf-experiment": _row(
        "experiments of other packages (entry points perfsuite.experiments), by commas", metavar="NAME,.."
    ),
    "--perf-shapes": _row(
        f"also hunt for shapes at which an operation is wrong or slow: {', '.join(SHAPE_OPERATIONS)}, all",
        metavar="NAME,..",
    ),
    "--perf-shape-subjects": _row(f"what computes: {', '.join(SHAPE_SUBJECTS)} (default tiled)", metavar="NAME,.."),
    "--perf-shape-types": _row(f"types of weights: {', '.join(SHAPE_TYPES)} (default all)", metavar="TYPE,.."),
    "--perf-shape-bounds": _row(
        "range of sizes, such as k=2:512,n=1:512 (default: small kernels)", metavar="NAME=LEAST:MOST,.."
    ),
    "--perf-shape-profile": _row(
        f"{'; '.join(f'{name}: {size}' for name, size in SHAPE_PROFILES.items())} (default {DEFAULT_SHAPE_PROFILE})",
        choices=tuple(SHAPE_PROFILES),
    ),
    "--perf-kernels": _row("folder of other sources of the tiled kernels", metavar="DIR"),
    "--perf-dir": _row("folder of the run's files (default: .perfsuite/runs/<id>)", metavar="DIR"),
    "--perf-report": _row("write report.html (default on)", choices=("on", "off"), default="on"),
    "--perf-history": _row(
        "folder or s3:// address of the history, or off (default: <rootdir>/.perfsuite/history)", metavar="DIR|off"
    ),
    "--perf-commit": _row("commit of the measured sources (default: the rootdir's)", metavar="SHA"),
    "--perf-address": _row(
        "how to reach the device: local, ssh:[user@]host[:port], user@host[:port], adb[:SERIAL], "
        "serial:[user@]/dev/PORT[,BAUD] (default: the profile's)",
        metavar="ADDRESS",
    ),
    "--perf-plan": _row(
        "write the run into this folder of 'perfsuite bundle --plan', measure nothing", metavar="FOLDER"
    ),
    "--perf-plan-pairs": _row(
        f"pairs of a planned run (default {DEFAULT_PLANNED_PAIRS})",
        type=int,
        default=DEFAULT_PLANNED_PAIRS,
        metavar="N",
    ),
    "--perf-ingest": _row("judge the results of a planned run; see 'perfsuite ingest'", metavar="FOLDER"),
    "--perf-results": _row("folder of these results (default: results/ in it)", metavar="FOLDER"),
    "--perf-wait": _row("wait so long for a device that another run has, such as 10m (default 0)", metavar="TIME"),
    "--farm": _row(
        "borrow a board of --device's kind from this labgrid coordinator (default: LG_COORDINATOR)",
        nargs="?",
        const="",
        metavar="HOST:PORT",
    ),
    "--farm-wait": _row(
        f"longest wait for a board, such as 30m (default {DEFAULT_FARM_WAIT})",
        metavar="TIME",
        default=DEFAULT_FARM_WAIT,
    ),
    "--farm-break": _row("first break the lock of a dead run on this place", metavar="PLACE"),
    "--farm-avoid": _row("places to take only if there is no other", metavar="PLACE,..."),
    "--perf-wait-quiet": _row(
        "wait so long for a busy machine, then start again, such as 5m (default: do not wait)", metavar="TIME"
    ),
    "--perf-replicates": _row("fresh processes for each case (default 10)", type=int, default=10, metavar="N"),
    "--perf-margin": _row(
        "change that passes, such as 0.05,phase=0.02 (default: see perf_margin)", metavar="RATIO|KIND=RATIO,.."
    ),
    "--perf-resolution": _row(
        "against stored times a case passes only if a slowdown of this ratio would be found "
        f"(default {DEFAULT_RESOLUTION_RATIO:g})",
        metavar="RATIO",
    ),
    "--perf-step-share": _row(
        f"a case may always change by this share of prefill or decode (default {DEFAULT_STEP_SHARE_RATIO:g})",
        metavar="RATIO",
    ),
    "--perf-calibrate": _row(
        f"without a stored calibration, make a quick one once (default {DEFAULT_CALIBRATION})",
        choices=("quick", "off"),
        default=DEFAULT_CALIBRATION,
    ),
    "--perf-strict": _row("new, invalid, incomparable, suspect and undecided cases fail", **_SWITCH),
    "--perf-suspect": _row(
        "exit code 0 or 1, not 11, if a case looks slower, not proven, or there are fewer than five pairs",
        choices=("pass", "fail"),
    ),
    "--perf-allow-undecided": _row("exit code 0, not 10, if nothing could be judged", **_SWITCH),
    "--perf-allow-different-output": _row("judge pairs whose sides compute different outputs, too", **_SWITCH),
    "--perf-flash-attn": _row("flash attention (default: on; off for OpenCL on a CPU)", choices=("on", "off")),
    "--perf-opencl-platform": _row("part of the OpenCL platform's name", metavar="NAME"),
    "--perf-inject": _row("slow an operator or phase by this ratio, to test the verdict", metavar="OP=RATIO"),
    "--against": _row("compare in pairs with another llama.cpp: checkout, build or prefix", metavar="DIR"),
    "--against-model": _row("compare in pairs with another model", metavar="PATH|NAME"),
    "--against-args": _row(f"compare in pairs with other settings: {AGAINST_ARGUMENTS}", metavar="NAME=VALUE .."),
    "--perf-budget": _row(
        "time for pairs, such as 120s or 5m; half more where a case looks slower or pairs are too few "
        f"(default {DEFAULT_BUDGET})",
        metavar="SECONDS",
    ),
}

#: Values of the ini file, with what each says.
INI_VALUES = {
    "perf_margin": "change that passes, such as 0.05,phase=0.02 (default: the device's, else 0.05)",
    "perf_session_spread": "spread between sessions, as a ratio (default: the device's)",
    "perf_resolution": f"as --perf-resolution (default {DEFAULT_RESOLUTION_RATIO:g})",
    "perf_step_share": f"as --perf-step-share (default {DEFAULT_STEP_SHARE_RATIO:g})",
}

#: Options that say nothing without ``--perf-shapes``.
SHAPE_OPTIONS = (
    *("--perf-shape-subjects", "--perf-shape-types", "--perf-shape-bounds", "--perf-shape-profile"),
    "--perf-kernels",
)


def own_name(word: str) -> str:
    """Return an option by the name that no other plugin of pytest has, such as ``--perf-device=host``."""
    return re.sub(r"^--(?!perf-)", _OWN, word)


def command_settings(name: str, default: str | None = None) -> dict[str, Any]:
    """Return what a command's parser takes of an option, by its name without dashes.

    Where the command has a default of its own, the help ends with that; an empty one is none.
    """
    settings = OPTIONS.get(f"--{name}") or OPTIONS[f"{_OWN}{name}"]
    if default is None:
        return settings
    does = settings["help"].partition(" (default")[0]
    return {**settings, "default": default or None, "help": f"{does} (default {default})" if default else does}
