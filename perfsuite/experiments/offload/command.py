"""``perfsuite offload``: speed, graph splits and refused operators against the layers that a device computes."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from perfsuite.cli.answer import check_picture, draw, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.opencl_run import engine_run, named_weights, opencl_backend
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_shared, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.offload.command_tables import sweep_answer

_DEFAULT_ROUNDS = 3
_DEFAULT_SCENARIO = "p16-g8"


_ABOUT = """
A model is run with different numbers of its layers on llama.cpp's OpenCL backend, in fresh processes that take turns.
Told are, by number of layers, the speed of prefill and decode in tokens/s, how llama.cpp splits its graph over the
backends, and which operators stay on the processor because the device refuses them.

'make perf-opencl' makes the backend. Nothing is compared with a baseline.
"""

_EXAMPLES = {
    "perfsuite offload": "none of the layers against all",
    "perfsuite offload --gpu-layers=0,8,16,24,all --rounds=5 --plot=offload.png": "a curve, drawn",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "offload",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the picture of --plot, and nothing else",
        see=("docs/offload.md",),
    )
    subject = add_subject(parser, "device", "model", f"scenario={_DEFAULT_SCENARIO}", "threads")
    subject.add_argument("--backend", choices=("opencl",), default="opencl", help="whose device (default opencl)")
    add_shared(subject, "opencl-platform", "flash-attn")
    effort = effort_group(parser)
    text = "numbers of layers, the output layer counted as one, and 'all', by commas (default 0,all)"
    effort.add_argument("--gpu-layers", default="0,all", metavar="LIST", help=text)
    text = f"timed processes (default {_DEFAULT_ROUNDS})"
    effort.add_argument("--rounds", type=int, default=_DEFAULT_ROUNDS, metavar="N", help=text)
    answer = add_answer(parser)
    answer.add_argument("--plot", type=Path, metavar="FILE", help="draw the sweep as PNG or SVG")
    parser.set_defaults(run=_offload)


def _offload(options: argparse.Namespace) -> int:
    from perfsuite.experiments.offload.chart import offload_chart
    from perfsuite.experiments.offload.sweep import measure_offload  # NumPy

    check_least(options, "threads", "rounds")
    check_picture(options.plot)
    weights = named_weights(options)
    layers = gpu_layers(options.gpu_layers, weights.architecture.n_layers + 1)
    profile = find_local_profile(options.device)
    with taken_device(profile, "offload", options), progress("offload", options) as told:
        backend = opencl_backend(options)
        run = engine_run(options, backend)
        sweep = measure_offload(run.plan, backend, profile, layers=layers, n_rounds=options.rounds, announce=told.step)
        if options.plot is not None:
            draw(offload_chart(sweep, name=run.workload.prefix, device=str(backend.device)), options.plot)
            told.remark(f"{options.plot}: drawn")
    give(sweep_answer(sweep, run.workload, backend), options)
    return 0


def gpu_layers(text: str, n_all: int) -> tuple[int, ...]:
    """Return the numbers of layers that a list by commas names, each once and in its order; ``all`` is `n_all`.

    Raises `PerfsuiteError`: a part is no number of layers that the model has.
    """
    numbers = []
    for part in text.split(","):
        number = n_all if part.strip() == "all" else int(part) if re.fullmatch(r"\s*[0-9]{1,6}\s*", part) else -1
        if not 0 <= number <= n_all:
            raise PerfsuiteError(f"--gpu-layers={text}: '{part.strip()}' is no number of 0 to {n_all}, and not 'all'")
        numbers.append(number)
    return tuple(dict.fromkeys(numbers))
