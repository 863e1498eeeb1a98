"""``perfsuite kernels``: the kernels that llama.cpp launches on an OpenCL device, phase by phase."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from perfsuite.device.profile import find_profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.measure.launch import environment_engine
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, resolve

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands

_TOP = 8


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "kernels",
        help="show the kernels that llama.cpp launches on an OpenCL device, and when the device is idle",
        description="Run a model on llama.cpp's OpenCL backend under the tracing layer, and show by phase the time of "
        "each kernel and the operators that it computes, the device's idle share, the kernels that grow with the "
        "decode step, and how well the next steps could be forecast. 'make perf-opencl' makes the backend.",
    )
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument("--model", default="smollm2-135m-q8_0", metavar="PATH|NAME")
    parser.add_argument("--scenario", default="siso", metavar="NAME", help="default siso")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the engine (default: physical cores)")
    parser.add_argument("--opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")
    parser.add_argument("--flash-attn", choices=("on", "off"), help="default on; off where the device is a processor")
    parser.add_argument("--top", type=int, default=_TOP, metavar="N", help=f"kernels of each phase (default {_TOP})")
    parser.add_argument("--json", action="store_true", help="print JSON, with all kernels")
    parser.set_defaults(run=_kernels)


def _kernels(options: argparse.Namespace) -> int:
    from perfsuite.cli.kernel_tables import show_view  # NumPy and the layers, which few commands need
    from perfsuite.cli.kernels_json import print_view
    from perfsuite.expectation.cases import llama_workload
    from perfsuite.measure.llama_plan import llama_plan
    from perfsuite.measure.opencl_setup import set_up_opencl
    from perfsuite.verdict.traced_view import traced_view

    for name in ("threads", "top"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise PerfsuiteError(f"--{name}={value}: expected 1 or more")
    profile, scenario = find_profile(options.device), find_scenario(options.scenario)
    cache_dir, engine = Path(platformdirs.user_cache_dir("perfsuite")), environment_engine()
    weights = resolve(options.model, cache_dir=cache_dir / "models")
    backend = set_up_opencl(engine, options.opencl_platform or profile.opencl_platform, cache_dir)
    flash_attn = not backend.device.is_cpu if options.flash_attn is None else options.flash_attn == "on"
    workload = llama_workload(weights, scenario, flash_attn=flash_attn)
    plan = llama_plan(
        workload,
        engine,
        gguf_path=materialize(weights, cache_dir=cache_dir / "models"),
        cache_dir=cache_dir,
        n_threads=options.threads or default_threads(),
        opencl=backend,
    )
    traced = traced_view(plan, backend, profile, cache_dir=cache_dir, announce=_announce)
    if options.json:
        print_view(traced, workload, backend)
    else:
        show_view(traced, workload, backend, n_top=options.top)
    return 0


def _announce(text: str) -> None:
    print(f"kernels: {text}", file=sys.stderr, flush=True)
