"""``perfsuite kernels``: the kernels that llama.cpp launches on an OpenCL device, phase by phase."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from perfsuite.errors import PerfsuiteError

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
    from perfsuite.cli.opencl_run import named_weights, opencl_run
    from perfsuite.verdict.traced_view import traced_view

    for name in ("threads", "top"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise PerfsuiteError(f"--{name}={value}: expected 1 or more")
    run = opencl_run(options, named_weights(options))
    traced = traced_view(run.plan, run.backend, run.profile, cache_dir=run.cache_dir, announce=_announce)
    if options.json:
        print_view(traced, run.workload, run.backend)
    else:
        show_view(traced, run.workload, run.backend, n_top=options.top)
    return 0


def _announce(text: str) -> None:
    print(f"kernels: {text}", file=sys.stderr, flush=True)
