"""``perfsuite policy``: the best tiling, and the better backend, by shape; and whether what that promises holds."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite import __version__
from perfsuite.cli.policy_sizes import FORM, grid_sizes, number_list
from perfsuite.cli.shape_options import (
    add_device_options,
    check_counts,
    check_outputs,
    check_shape_bytes,
    opened_meters,
)
from perfsuite.cli.sweep_sizes import size_option
from perfsuite.device.threads import default_threads
from perfsuite.errors import PolicyError
from perfsuite.workload.shapes.operation import STORED_TYPES, Operation
from perfsuite.workload.shapes.shape_case import Subject

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands
    from perfsuite.records.shape_policy import ShapePolicy
    from perfsuite.verdict.shapes.policy_question import PolicyQuestion
    from perfsuite.verdict.shapes.policy_rounds import RoundDesign, SubjectMeters

_TILES, _VECTORS = "8,16,32,64", "4,8,16"
_CHOOSE = ("both", "tiling", "backend")

#: Of two processes that promise an interval says nothing.
_LEAST_PROCESSES = 6

_DESCRIPTION = (
    "Measure an operation over a grid of shapes and write a small table that a runtime can load: the best tile and "
    "vector width of the suite's kernels by size, and from which size on ggml's OpenCL backend beats its processor "
    "backend, with the gain that this promises over the best single choice. 'check' measures each row anew, at sizes "
    "that are drawn from its range."
)


def add_parser(commands: Commands) -> None:
    """Add the subcommand: one action for each operation, and the check."""
    parser = commands.add_parser(
        "policy", help="choose tiles and backends by shape, and check the gain", description=_DESCRIPTION
    )
    actions = parser.add_subparsers(required=True, metavar="gemm|bmm|gemv|attention|check")
    for operation in Operation:
        _add_measure(actions, operation)
    _add_check(actions)


def _add_measure(actions: Commands, operation: Operation) -> None:
    about = f"measure the policy of {operation.value}"
    parser = actions.add_parser(operation.value, help=about, allow_abbrev=False)  # --k is not short for --kv-heads
    add_device_options(parser)
    parser.add_argument("--type", choices=STORED_TYPES, default="f16", help="how B is stored (default f16)")
    sizes = parser.add_argument_group("sizes", f"one dimension decides and gets several sizes: {FORM}")
    for name in operation.dimensions:
        sizes.add_argument(size_option(name), dest=f"size_{name}", metavar="SIZES")
    what = parser.add_argument_group("what is chosen")
    what.add_argument("--choose", choices=_CHOOSE, default="both", help="default both")
    what.add_argument("--tiles", default=_TILES, metavar="LIST", help=f"default {_TILES}")
    what.add_argument("--vectors", default=_VECTORS, metavar="LIST", help=f"default {_VECTORS}")
    _add_effort(parser, n_processes=8)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the policy there")
    parser.add_argument("--json", nargs="?", const="-", choices=("-",), metavar="-", help="print the policy as JSON")
    parser.set_defaults(run=_measure, operation=operation)


def _add_check(actions: Commands) -> None:
    parser = actions.add_parser("check", help="measure what a policy promises; 1 where a promise fails")
    parser.add_argument("path", type=Path, metavar="POLICY.json", help="what 'perfsuite policy -o' wrote")
    parser.add_argument("--opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")
    _add_effort(parser, n_processes=6)
    parser.add_argument("--json", nargs="?", const="-", choices=("-",), metavar="-", help="print JSON")
    parser.set_defaults(run=_check)


def _add_effort(parser: argparse.ArgumentParser, *, n_processes: int) -> None:
    parser.add_argument(
        "--processes", type=int, default=n_processes, metavar="N", help=f"fresh processes (default {n_processes})"
    )
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="rounds in each (default 4)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the orders of rounds (default 0)")


def _measure(options: argparse.Namespace) -> int:
    from perfsuite.cli.policy_tables import show_policy  # NumPy, which few commands need
    from perfsuite.records.shape_policy_file import policy_plain, write_policy

    check_counts(options, "threads", "processes", "rounds")
    check_outputs({"--output": options.output})
    if options.processes % 2 or options.processes < _LEAST_PROCESSES:
        wanted = f"an even number from {_LEAST_PROCESSES} on"
        raise PolicyError(f"--processes={options.processes}: expected {wanted}; one half chooses, one promises")
    questions = _questions(options)
    _check_bytes(questions)
    policy = _measured(options, questions)
    if options.output is not None:  # first, for whoever reads the rest may leave
        write_policy(policy, options.output)
        print(f"{options.output}: written; 'perfsuite policy check' measures what it promises", file=sys.stderr)
    if options.json:
        print(json.dumps(policy_plain(policy), indent=1, ensure_ascii=False))
    else:
        show_policy(policy)
    return 0


def _questions(options: argparse.Namespace) -> tuple[PolicyQuestion, ...]:
    from perfsuite.records.shape_policy import Decision
    from perfsuite.verdict.shapes.policy_question import BACKENDS, PolicyQuestion, tilings
    from perfsuite.workload.shapes.operation_shape import OperationShape

    operation: Operation = options.operation
    texts = {name: text for name in operation.dimensions if (text := getattr(options, f"size_{name}")) is not None}
    dimension, sizes, fixed = grid_sizes(operation, options.type, texts)
    shape = OperationShape.of_sizes(operation, options.type, {**fixed, dimension: sizes[0]})
    choices = {
        Decision.TILING: tilings(number_list("--tiles", options.tiles), number_list("--vectors", options.vectors)),
        Decision.BACKEND: BACKENDS,
    }
    return tuple(
        PolicyQuestion(decides=decides, shape=shape, dimension=dimension, sizes=sizes, choices=offered)
        for decides, offered in choices.items()
        if options.choose in ("both", decides.value)
    )


def _measured(options: argparse.Namespace, questions: tuple[PolicyQuestion, ...]) -> ShapePolicy:
    from perfsuite.cli.policy_progress import announce, progress_of
    from perfsuite.records.shape_policy import ShapePolicy
    from perfsuite.verdict.shapes.policy import measure_policy

    design, found = _design(options), []
    for question in questions:
        with ExitStack() as stack:
            meters = _opened(stack, options, {choice.subject for choice in question.choices})
            progress = progress_of(question.decides.value)
            announce(question)
            found.append(measure_policy(question, meters, design=design, seed=options.seed, progress=progress))
    return ShapePolicy(
        recorded_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        suite_version=__version__,
        device=options.device,
        n_threads=options.threads or default_threads(),
        subjects=tuple(subject for each in found for subject in each.subjects),
        tables=tuple(each.table for each in found),
    )


def _check_bytes(questions: Iterable[PolicyQuestion]) -> None:
    for each in questions:
        check_shape_bytes([each.shape_at(each.sizes[-1])], verifies=True)


def _check(options: argparse.Namespace) -> int:
    from perfsuite.cli.policy_json import checks_plain
    from perfsuite.cli.policy_progress import progress_of
    from perfsuite.cli.policy_tables import show_checks
    from perfsuite.records.shape_policy_file import read_policy
    from perfsuite.verdict.shapes.policy_check import Holding, check_table, refuse_other_device
    from perfsuite.verdict.shapes.policy_question import question_of

    check_counts(options, "processes", "rounds")
    policy, design = read_policy(options.path), _design(options)
    _check_bytes(question_of(each) for each in policy.tables)
    where = argparse.Namespace(**{**vars(options), "device": policy.device, "threads": policy.n_threads})
    with ExitStack() as stack:
        meters = _opened(stack, where, {each.subject for each in policy.subjects})
        refuse_other_device(policy, meters)
        checked = [
            (each, check_table(each, meters, design=design, seed=options.seed, progress=progress_of(each.title)))
            for each in policy.tables
        ]
    if options.json:
        print(json.dumps(checks_plain(checked), indent=1, ensure_ascii=False))
    else:
        for table, checks in checked:
            show_checks(table, checks)
    return int(any(each.holding is Holding.FAILS for _, checks in checked for each in checks))


def _opened(stack: ExitStack, options: argparse.Namespace, subjects: set[str]) -> SubjectMeters:
    wanted = [subject for subject in Subject if subject.value in subjects]
    return {subject: stack.enter_context(opened_meters(options, subject)) for subject in wanted}


def _design(options: argparse.Namespace) -> RoundDesign:
    from perfsuite.verdict.shapes.policy_rounds import RoundDesign

    try:
        return RoundDesign(n_processes=options.processes, n_rounds=options.rounds)
    except PolicyError as error:
        raise PolicyError(f"--processes={options.processes} --rounds={options.rounds}: {error}") from None
