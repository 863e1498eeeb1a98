"""``perfsuite kernels``: the kernels that llama.cpp launches on an OpenCL device, phase by phase."""

from __future__ import annotations

import argparse

from perfsuite.cli.answer import give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.opencl_run import engine_run, named_weights, opencl_backend
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.experiments.kernels.command_tables import view_answer

_TOP = 8


_ABOUT = """
A model is run on llama.cpp's OpenCL backend under the tracing layer. Told are, by phase, the time of each kernel and
the operators that it computes, the share of time in which the device is idle, the kernels that grow with the decode
step, and how well the next steps could be forecast.

'make perf-opencl' makes the backend. To judge kernels against baselines, run them as cases: pytest --device=host
--backend=opencl -k engine_kernel. 'perfsuite trace --opencl' follows any other program.
"""

_EXAMPLES = {
    "perfsuite kernels": "the default device of the profile",
    "perfsuite kernels --scenario=p64-g32 --top=20 --json": "a longer generation, with all kernels, for a program",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(commands, "kernels", about=_ABOUT, examples=_EXAMPLES, see=("docs/kernels.md",))
    add_subject(parser, "device", "model", "scenario", "threads", "opencl-platform", "flash-attn")
    answer = add_answer(parser, json_help="print JSON, with all kernels")
    answer.add_argument("--top", type=int, default=_TOP, metavar="N", help=f"kernels of each phase (default {_TOP})")
    parser.set_defaults(run=_kernels)


def _kernels(options: argparse.Namespace) -> int:
    from perfsuite.experiments.kernels.traced_view import traced_view  # NumPy and the layers, which few commands need

    check_least(options, "threads", "top")
    profile = find_local_profile(options.device)
    named_weights(options)
    with taken_device(profile, "kernels", options), progress("kernels", options) as told:
        backend = opencl_backend(options)
        run = engine_run(options, backend)
        traced = traced_view(run.plan, backend, profile, cache_dir=user_cache(), announce=told.step)
    give(view_answer(traced, run.workload, backend, n_top=options.top), options)
    return 0
