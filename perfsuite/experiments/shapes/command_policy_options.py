"""What ``perfsuite policy`` can do, with the options of each."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_action, add_quiet
from perfsuite.cli.run_options import answer_group, effort_group
from perfsuite.experiments.shapes.command_shape_options import MEANS, add_device_options
from perfsuite.experiments.shapes.policy_sizes import FORM
from perfsuite.experiments.shapes.sweep_sizes import size_option
from perfsuite.workload.shapes.operation import STORED_TYPES, Operation

_TILES, _VECTORS = "8,16,32,64", "4,8,16"
_CHOOSE = ("both", "tiling", "backend")

#: A command line for each operation, for its help.
_EXAMPLE = {
    Operation.GEMM: "perfsuite policy gemm --m=1:128 --n=64 --k=64 --type=f32 --choose=tiling -o policy.json",
    Operation.BMM: "perfsuite policy bmm --b=9 --m=1 --n=32:512:32 --k=64 -o policy.json",
    Operation.GEMV: "perfsuite policy gemv --n=8:2048 --k=576 --type=q8_0 --choose=backend -o policy.json",
    Operation.ATTENTION: "perfsuite policy attention --heads=9 --kv-heads=3 --head-size=64 --context=32:1024:32",
}


def add_measure(actions: Commands, operation: Operation) -> argparse.ArgumentParser:
    """Add the measurement of an operation's policy."""
    parser = add_action(
        actions,
        operation.value,
        summary=f"measure the policy of {operation.value}",
        examples={_EXAMPLE[operation]: "write a policy over the sizes of one dimension"},
        writes="the policy to --output, and nothing without it",
        allow_abbrev=False,  # --k is not short for --kv-heads
    )
    add_device_options(parser)
    parser.add_argument("--type", choices=STORED_TYPES, default="f16", help="how B is stored (default f16)")
    sizes = parser.add_argument_group("sizes", f"one dimension decides and gets several sizes: {FORM}")
    for name in operation.dimensions:
        sizes.add_argument(size_option(name), dest=f"size_{name}", metavar="SIZES", help=MEANS[name])
    what = parser.add_argument_group("what is chosen")
    what.add_argument("--choose", choices=_CHOOSE, default="both", help="what to decide (default both)")
    what.add_argument("--tiles", default=_TILES, metavar="LIST", help=f"tiles to choose from (default {_TILES})")
    text = f"vector widths to choose from (default {_VECTORS})"
    what.add_argument("--vectors", default=_VECTORS, metavar="LIST", help=text)
    answer = _add_effort_and_answer(parser, n_processes=8)
    answer.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the policy there")
    return parser


def add_check(actions: Commands) -> argparse.ArgumentParser:
    """Add the check of a policy that was written."""
    parser = add_action(
        actions,
        "check",
        summary="measure what a policy promises",
        about="The device is the one that the policy was measured on; another one is refused.",
        examples={"perfsuite policy check policy.json --rounds=8": "with twice the usual rounds"},
        exits={1: "a promise fails"},
    )
    parser.add_argument("path", type=Path, metavar="POLICY.json", help="what 'perfsuite policy -o' wrote")
    parser.add_argument("--opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")
    _add_effort_and_answer(parser, n_processes=6)
    return parser


def _add_effort_and_answer(parser: argparse.ArgumentParser, *, n_processes: int) -> argparse._ArgumentGroup:
    effort = effort_group(parser)
    text = f"fresh processes (default {n_processes})"
    effort.add_argument("--processes", type=int, default=n_processes, metavar="N", help=text)
    effort.add_argument("--rounds", type=int, default=4, metavar="N", help="rounds in each (default 4)")
    effort.add_argument("--seed", type=int, default=0, metavar="N", help="of the orders of rounds (default 0)")
    answer = answer_group(parser)
    answer.add_argument("--json", nargs="?", const="-", choices=("-",), metavar="-", help="print JSON")
    add_quiet(answer)
    return answer
