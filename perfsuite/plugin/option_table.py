"""Every option, ini value and marker of the plugin, as pytest's help shows them.

pytest loads this in each project where the suite is installed, so it imports nothing of the suite: lists of names are
written out, and a test holds them against what the suite knows.
"""

from __future__ import annotations

import argparse

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

#: Options that say nothing without ``--perf-shapes``, by the names of their values.
SHAPE_OPTIONS = {
    "perf_shape_subjects": "--perf-shape-subjects",
    "perf_shape_types": "--perf-shape-types",
    "perf_shape_bounds": "--perf-shape-bounds",
    "perf_shape_profile": "--perf-shape-profile",
    "perf_kernels": "--perf-kernels",
}

#: Options of all runs by which a hunt for shapes may end otherwise.
_SHARED = {
    "perf_opencl_platform": "--perf-opencl-platform",
    "threads": "--threads",
    "perf_margin": "--perf-margin",
    "baseline_dir": "--baseline-dir",
}

#: Names so short that another plugin may have them.
_NAMED = frozenset(
    {"--device", "--model", "--scenario", "--prompts", "--threads", "--backend", "--baseline", "--baseline-dir"},
)

_CONFLICT = "perfsuite: another plugin has defined {} already; if it is pytest-playwright, run with '-p no:playwright'"


def given_options(option: argparse.Namespace) -> tuple[str, ...]:
    """Return the options by which a hunt for shapes is repeated, as they were given, but for the seed."""
    named = {"perf_shapes": "--perf-shapes", **SHAPE_OPTIONS, **_SHARED}
    values = {name: getattr(option, value) for value, name in named.items()}
    values["--baseline"] = "off" if option.baseline == "off" else None
    return tuple(f"{name}={value}" for name, value in values.items() if value is not None)


def add_options(parser: pytest.Parser) -> None:
    """Register options and ini values."""
    group = parser.getgroup(GROUP, "performance regression of on-device LLM inference")
    if taken := _NAMED.intersection(_known_options(parser)):
        raise pytest.UsageError(_CONFLICT.format(", ".join(sorted(taken))))
    _add_named(group)
    group.addoption(
        "--perf-sweep",
        metavar="NAME,..",
        help=f"place series of workloads under the device's roofline: {', '.join(SWEEPS)}, all",
    )
    group.addoption("--perf-long", action="store_true", help="sweep lengths and sizes of real use, which take hours")
    group.addoption(
        "--perf-fidelity",
        action="store_true",
        help="hold the suite's own timings against an independent tracer and kernel duplication",
    )
    group.addoption("--perf-overhead", action="store_true", help="measure what recorders cost, alone and together")
    group.addoption(
        "--perf-trace",
        action="store_true",
        help="trace a run, and judge balance of threads, growth of attention, linearity of products, reuse of experts",
    )
    _add_shapes(group)
    group.addoption("--perf-dir", metavar="DIR", help="where the run's files go (default: .perfsuite/runs/<id>)")
    _add_outputs(group)
    _add_board(group)
    _add_farm(group)
    group.addoption(
        "--perf-wait-quiet",
        metavar="TIME",
        help="where others use the processors, wait so long for quiet and begin anew, such as 5m (default: go on)",
    )
    group.addoption("--perf-replicates", type=int, default=10, metavar="N", help="fresh processes (default 10)")
    group.addoption(
        "--perf-margin",
        metavar="RATIO|KIND=RATIO,..",
        help="change that passes, of all cases or by kind, such as 0.05,phase=0.02 (default: see perf_margin)",
    )
    group.addoption(
        "--perf-resolution",
        metavar="RATIO",
        help="coarsest resolution that still passes: where only a slowdown of more could be found, a case is "
        f"undecided (default {DEFAULT_RESOLUTION_RATIO:g}; pairs pass at 0.1 at most)",
    )
    group.addoption(
        "--perf-step-share",
        metavar="RATIO",
        help="share of prefill or decode that a case of it may change by, where that is more than its margin; 0 for "
        f"none (default {DEFAULT_STEP_SHARE_RATIO:g})",
    )
    group.addoption(
        "--perf-calibrate",
        choices=("quick", "off"),
        default=DEFAULT_CALIBRATION,
        help="where no calibration is stored, forecast by a quick one of what the run needs, made once "
        f"(default {DEFAULT_CALIBRATION})",
    )
    group.addoption("--perf-strict", action="store_true", help="fail cases that are new, invalid or undecided, too")
    group.addoption(
        "--perf-allow-undecided", action="store_true", help="exit with 0 where nothing could be judged, and not with 10"
    )
    group.addoption(
        "--perf-flash-attn",
        choices=("on", "off"),
        help="flash attention (default on; off where OpenCL runs on a processor, which compiles it for 20 s and more)",
    )
    group.addoption("--perf-opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")
    group.addoption("--perf-inject", metavar="OP=RATIO", help="slow an operator or a phase down, to test a verdict")
    _add_against(group)
    parser.addini(
        "perf_margin",
        "change that passes, of all cases or by kind, such as 0.05,phase=0.02 (default: the device's, else 0.05)",
        default=None,
    )
    parser.addini("perf_session_spread", "spread between sessions, as a ratio (default: the device profile's)")
    parser.addini(
        "perf_resolution",
        f"coarsest resolution that still passes; --perf-resolution overrides it (default {DEFAULT_RESOLUTION_RATIO:g})",
    )
    parser.addini(
        "perf_step_share",
        "share of prefill or decode that a case of it may change by; --perf-step-share overrides it "
        f"(default {DEFAULT_STEP_SHARE_RATIO:g})",
    )


def _known_options(parser: pytest.Parser) -> set[str]:
    """Return the names of all options so far; pytest has no public way to ask, and reports a clash by a traceback."""
    groups = [parser._anonymous, *parser._groups]
    return {name for group in groups for option in group.options for name in option.names()}


def _add_named(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--device",
        metavar="NAME",
        help="run the performance cases on a device: host, or another of 'perfsuite devices'",
    )
    group.addoption(
        "--model",
        metavar="PATH|NAME",
        help="a GGUF file, or architecture-quantisation from the catalogue "
        f"(default: the device's, else {DEFAULT_MODEL})",
    )
    group.addoption(
        "--scenario",
        default=DEFAULT_SCENARIO,
        metavar="NAME",
        help=f"{', '.join(SCENARIOS)}, or p<prompt>-g<generated> (default {DEFAULT_SCENARIO})",
    )
    group.addoption(
        "--prompts",
        metavar="FILE",
        help="prompts that each process runs in turn, such as 'perfsuite prompts' writes; the scenario says how many "
        "tokens follow each",
    )
    group.addoption("--threads", type=int, metavar="N", help="threads of the engine (default: physical cores)")
    group.addoption("--backend", choices=("cpu", "opencl"), default="cpu", help="llama.cpp backend (default cpu)")
    group.addoption(
        "--baseline", choices=("compare", "record", "off"), default="compare", help="stored baselines (default compare)"
    )
    group.addoption("--baseline-dir", metavar="DIR", help="where baselines lie (default: <rootdir>/baselines)")


def _add_against(group: pytest.OptionGroup) -> None:
    """What pairs compare with, and how long."""
    group.addoption(
        "--against", metavar="DIR", help="compare, in pairs, with another llama.cpp: checkout, build, prefix"
    )
    group.addoption("--against-model", metavar="PATH|NAME", help="compare, in pairs, with another model file")
    group.addoption(
        "--against-args", metavar="NAME=VALUE ..", help=f"compare, in pairs, with settings: {AGAINST_ARGUMENTS}"
    )
    group.addoption(
        "--perf-budget",
        metavar="SECONDS",
        help="time to look for changes in pairs, half as long again to confirm them, such as 120s or 5m "
        f"(default {DEFAULT_BUDGET})",
    )


def _add_outputs(group: pytest.OptionGroup) -> None:
    """Where a run comes from, and what it writes."""
    group.addoption(
        "--perf-report", choices=("on", "off"), default="on", help="write report.html beside run.json (default on)"
    )
    group.addoption(
        "--perf-history",
        metavar="DIR|off",
        help="append the run to the history in a folder (default: <rootdir>/.perfsuite/history)",
    )
    group.addoption(
        "--perf-commit",
        metavar="SHA",
        help="commit that is measured, such as that of the sources a build was made from (default: of the rootdir)",
    )


def _add_board(group: pytest.OptionGroup) -> None:
    """How a device is reached."""
    group.addoption(
        "--perf-address",
        metavar="local|ssh:HOST|adb",
        help="reach the device in this way instead of its profile's: local, ssh:[user@]host[:port], adb[:SERIAL]",
    )
    group.addoption(
        "--perf-wait", metavar="TIME", help="wait for a device that somebody else has, such as 10m (default: do not)"
    )


def _add_farm(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--farm",
        nargs="?",
        const="",
        metavar="HOST:PORT",
        help="borrow a board of --device's kind through labgrid's coordinator there (default: LG_COORDINATOR)",
    )
    group.addoption(
        "--farm-wait",
        default=DEFAULT_FARM_WAIT,
        metavar="TIME",
        help=f"longest wait for a board that others have, such as 30m (default {DEFAULT_FARM_WAIT})",
    )
    group.addoption("--farm-break", metavar="PLACE", help="break the lock of a dead run on a place of the farm first")
    group.addoption(
        "--farm-avoid",
        metavar="PLACE,...",
        help="places of the farm that are taken only where there is no other of the kind",
    )


def _add_shapes(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--perf-shapes",
        metavar="NAME,..",
        help=f"hunt for shapes at which an operation breaks down: {', '.join(SHAPE_OPERATIONS)}, all",
    )
    group.addoption(
        "--perf-shape-subjects", metavar="NAME,..", help=f"who computes: {', '.join(SHAPE_SUBJECTS)} (default tiled)"
    )
    group.addoption(
        "--perf-shape-types", metavar="TYPE,..", help=f"how weights are stored: {', '.join(SHAPE_TYPES)} (default all)"
    )
    group.addoption(
        "--perf-shape-bounds",
        metavar="NAME=LEAST:MOST,..",
        help="sizes to draw from, such as k=2:512,n=1:512 (default: those of small kernels)",
    )
    budgets = "; ".join(f"{name}: {size}" for name, size in SHAPE_PROFILES.items())
    group.addoption(
        "--perf-shape-profile", choices=tuple(SHAPE_PROFILES), help=f"{budgets} (default {DEFAULT_SHAPE_PROFILE})"
    )
    group.addoption("--perf-kernels", metavar="DIR", help="other sources of the tiled kernels, such as a changed copy")
