"""``perfsuite policy``."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite import __version__
from perfsuite.cli.answer import give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.progress import progress, remarks
from perfsuite.cli.run_options import add_answer, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.command_shape_options import (
    add_device_options,
    add_size_option,
    check_counts,
    check_shape_bytes,
    opened_meters,
    size_texts,
)
from perfsuite.experiments.shapes.sweep_sizes import FORM, grid_sizes, number_list
from perfsuite.measure.board.protocol import Board
from perfsuite.units import format_count
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation
from perfsuite.workload.shapes.shape_case import Subject

if TYPE_CHECKING:
    from perfsuite.experiments.shapes.policy_question import PolicyQuestion
    from perfsuite.experiments.shapes.policy_record import ShapePolicy
    from perfsuite.experiments.shapes.policy_rounds import RoundDesign, SubjectMeters


_TILES, _VECTORS = "8,16,32,64", "4,8,16"

#: Of two processes an interval is 13 standard errors wide to either side, and says nothing; one half promises.
_LEAST_CHECKED, _LEAST_PROCESSES = 3, 6

_EXAMPLE = {
    Operation.GEMM: "perfsuite policy gemm --m=1:128 --n=64 --k=64 --type=f32 --choose=tiling -o policy.json",
    Operation.BMM: "perfsuite policy bmm --b=9 --m=1 --n=32:512:32 --k=64 -o policy.json",
    Operation.GEMV: "perfsuite policy gemv --n=8:2048 --k=576 --type=q8_0 --choose=backend -o policy.json",
    Operation.ATTENTION: "perfsuite policy attention --heads=9 --kv-heads=3 --head-size=64 --context=32:1024:32",
}

_ABOUT = """
Writes a small table for a runtime to load: the best tile and vector width by size, and from which size on ggml's OpenCL
backend beats its CPU backend. Outputs are checked against NumPy first.
"""

_EXAMPLES = {
    "perfsuite policy gemv --n=8:2048 --k=576 --type=q8_0 -o policy.json": "measure and write",
    "perfsuite policy check policy.json": "does it keep its promise?",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand: one action for each operation, and the check."""
    parser = add_command(
        commands,
        "policy",
        about=_ABOUT,
        examples=_EXAMPLES,
        exits={1: "'check' found a promise that fails"},
        see=("docs/policy.md", "perfsuite sweep"),
    )
    actions = parser.add_subparsers(required=True, metavar="gemm|bmm|gemv|attention|check")
    for operation in Operation:
        _add_measure(actions, operation)
    check = add_command(
        actions,
        "check",
        summary="measure each row of a policy again",
        about="Sizes are drawn from the row's range. Another device than the policy's is refused.",
        examples={"perfsuite policy check policy.json --rounds=8": "twice the usual rounds"},
        exits={1: "a promise fails"},
    )
    check.add_argument("path", type=Path, metavar="POLICY.json", help="policy of 'perfsuite policy -o'")
    check.add_argument("--opencl-platform", metavar="NAME", help="part of the OpenCL platform's name")
    _add_effort_and_answer(check, "fresh processes", 6)
    check.set_defaults(run=_check)


def _add_measure(actions: Commands, operation: Operation) -> None:
    parser = add_command(
        actions,
        operation.value,
        summary=f"measure the policy of {operation.value}",
        examples={_EXAMPLE[operation]: "write a policy over the sizes of one dimension"},
        allow_abbrev=False,  # --k is not short for --kv-heads
    )
    add_device_options(parser)
    parser.add_argument("--type", choices=STORED_TYPES, default="f16", help="type of B (default f16)")
    sizes = parser.add_argument_group("sizes", f"give several sizes of one dimension: {FORM}")
    for name in operation.dimensions:
        add_size_option(sizes, name, "SIZES")
    what, choose = parser.add_argument_group("choices"), ("both", "tiling", "backend")
    what.add_argument("--choose", choices=choose, default="both", help="what to choose (default both)")
    what.add_argument("--tiles", default=_TILES, metavar="LIST", help=f"tiles to choose from (default {_TILES})")
    text = f"vector widths to choose from (default {_VECTORS})"
    what.add_argument("--vectors", default=_VECTORS, metavar="LIST", help=text)
    answer = _add_effort_and_answer(parser, f"fresh processes, an even number from {_LEAST_PROCESSES} on", 8)
    answer.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the policy")
    parser.set_defaults(run=_measure, operation=operation)


def _add_effort_and_answer(parser: argparse.ArgumentParser, what: str, n_processes: int) -> argparse._ArgumentGroup:
    effort = effort_group(parser)
    text = f"{what} (default {n_processes})"
    effort.add_argument("--processes", type=int, default=n_processes, metavar="N", help=text)
    effort.add_argument("--rounds", type=int, default=4, metavar="N", help="rounds in each process (default 4)")
    effort.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the order (default 0)")
    return add_answer(parser)


def _measure(options: argparse.Namespace) -> int:
    from perfsuite.experiments.shapes.command_policy_tables import policy_answer  # NumPy, which few commands need
    from perfsuite.experiments.shapes.policy_record import write_policy

    check_counts(options, "threads", "processes", "rounds")
    if options.processes % 2 or options.processes < _LEAST_PROCESSES:
        wanted = f"an even number from {_LEAST_PROCESSES} on"
        raise PolicyError(f"--processes={options.processes}: expected {wanted}; one half chooses, one promises")
    questions = _questions(options)
    for each in questions:
        check_shape_bytes([each.shape_at(each.sizes[-1])], verifies=True)
    with taken_device(find_profile(options.device), "policy", options) as taken:
        policy = _measured(options, questions, taken.board)
    if options.output is not None:  # first, for whoever reads the rest may leave
        write_policy(policy, options.output)
        remarks("policy", options).remark(f"{options.output}: written; 'perfsuite policy check' measures its promises")
    give(policy_answer(policy), options)
    return 0


def _questions(options: argparse.Namespace) -> tuple[PolicyQuestion, ...]:
    from perfsuite.experiments.shapes.policy_question import BACKENDS, PolicyQuestion, tilings
    from perfsuite.experiments.shapes.policy_record import Decision
    from perfsuite.workload.shapes.operation_shape import OperationShape

    operation: Operation = options.operation
    dimension, sizes, fixed = grid_sizes(operation, options.type, size_texts(options, operation))
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


def _measured(options: argparse.Namespace, questions: tuple[PolicyQuestion, ...], board: Board) -> ShapePolicy:
    from perfsuite.experiments.shapes.policy import measure_policy
    from perfsuite.experiments.shapes.policy_record import ShapePolicy

    design, found = _design(options), []
    for question in questions:
        with ExitStack() as stack:
            meters = _opened(stack, options, board, {choice.subject for choice in question.choices})
            told = stack.enter_context(progress("policy", options))
            counts = f"{format_count(len(question.choices), 'choice')} at {format_count(len(question.sizes), 'size')}"
            told.step(f"{question.decides.value}, {counts}, each compared with NumPy first")
            rounds = partial(told.step, f"{question.decides.value}, rounds")
            found.append(measure_policy(question, meters, design=design, seed=options.seed, progress=rounds))
    return ShapePolicy(
        recorded_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        suite_version=__version__,
        device=options.device,
        n_threads=options.threads or board.facts().default_threads,
        subjects=tuple(subject for _, subjects in found for subject in subjects),
        tables=tuple(table for table, _ in found),
    )


def _check(options: argparse.Namespace) -> int:
    from perfsuite.experiments.shapes.command_policy_tables import checks_answer
    from perfsuite.experiments.shapes.policy_check import Holding, check_table, refuse_other_device
    from perfsuite.experiments.shapes.policy_question import question_of
    from perfsuite.experiments.shapes.policy_record import read_policy

    check_counts(options, "processes", "rounds")
    policy, design = read_policy(options.path), _design(options)
    for each in map(question_of, policy.tables):
        check_shape_bytes([each.shape_at(each.sizes[-1])], verifies=True)
    where = argparse.Namespace(**{**vars(options), "device": policy.device, "threads": policy.n_threads})
    with ExitStack() as stack:
        taken = stack.enter_context(taken_device(find_profile(policy.device), "policy", options))
        meters = _opened(stack, where, taken.board, {each.subject for each in policy.subjects})
        refuse_other_device(policy, meters)
        told = stack.enter_context(progress("policy", options))
        checked = [
            (each, check_table(each, meters, design=design, seed=options.seed, progress=rounds))
            for each in policy.tables
            for rounds in [partial(told.step, f"{each.title}, rounds")]
        ]
    give(checks_answer(checked), options)
    return int(any(each.holding is Holding.FAILS for _, checks in checked for each in checks))


def _opened(stack: ExitStack, options: argparse.Namespace, board: Board, subjects: set[Subject]) -> SubjectMeters:
    wanted = [subject for subject in Subject if subject in subjects]
    return {subject: stack.enter_context(opened_meters(options, subject, board)) for subject in wanted}


def _design(options: argparse.Namespace) -> RoundDesign:
    from perfsuite.experiments.shapes.policy_rounds import RoundDesign

    if options.processes < _LEAST_CHECKED:
        wanted = f"{_LEAST_CHECKED} or more"
        raise PolicyError(f"--processes={options.processes}: expected {wanted}; intervals rest on how processes differ")
    return RoundDesign(n_processes=options.processes, n_rounds=options.rounds)
