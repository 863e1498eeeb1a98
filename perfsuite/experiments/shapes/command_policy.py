"""``perfsuite policy``: the best tiling, and the better backend, by shape; and whether what that promises holds."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from perfsuite import __version__
from perfsuite.cli.answer import give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.progress import progress, remarks
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.command_policy_options import add_check, add_measure
from perfsuite.experiments.shapes.command_shape_options import (
    check_counts,
    check_outputs,
    check_shape_bytes,
    opened_meters,
)
from perfsuite.experiments.shapes.policy_sizes import grid_sizes, number_list
from perfsuite.units import format_count
from perfsuite.workload.shapes.operation import Operation
from perfsuite.workload.shapes.shape_case import Subject

if TYPE_CHECKING:
    from perfsuite.experiments.shapes.policy_question import PolicyQuestion
    from perfsuite.experiments.shapes.policy_record import ShapePolicy
    from perfsuite.experiments.shapes.policy_rounds import RoundDesign, SubjectMeters


#: Of two processes that promise an interval says nothing.
_LEAST_PROCESSES = 6

_ABOUT = """
An operation is measured over a grid of shapes, and what comes out is a small table that a runtime can load: the best
tile and vector width of the suite's kernels by size, and from which size on ggml's OpenCL backend beats its processor
backend, with the gain that this promises over the best single choice. 'check' measures each row anew, at sizes that are
drawn from its range.

It chooses among what there is, and writes no kernel. Each output is compared with NumPy's first.
"""

_EXAMPLES = {
    "perfsuite policy gemv --n=8:2048 --k=576 --type=q8_0 -o policy.json": "measure and write",
    "perfsuite policy check policy.json": "does what it promises hold?",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand: one action for each operation, and the check."""
    parser = add_command(
        commands,
        "policy",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the policy to --output, and nothing without it",
        exits={1: "'check': a promise fails"},
        see=("docs/policy.md", "perfsuite sweep --help"),
    )
    actions = parser.add_subparsers(required=True, metavar="gemm|bmm|gemv|attention|check")
    for operation in Operation:
        add_measure(actions, operation).set_defaults(run=_measure, operation=operation)
    add_check(actions).set_defaults(run=_check)


def _measure(options: argparse.Namespace) -> int:
    from perfsuite.experiments.shapes.command_policy_tables import policy_answer  # NumPy, which few commands need
    from perfsuite.experiments.shapes.policy_file import write_policy

    check_counts(options, "threads", "processes", "rounds")
    check_outputs({"--output": options.output})
    if options.processes % 2 or options.processes < _LEAST_PROCESSES:
        wanted = f"an even number from {_LEAST_PROCESSES} on"
        raise PolicyError(f"--processes={options.processes}: expected {wanted}; one half chooses, one promises")
    questions = _questions(options)
    _check_bytes(questions)
    with taken_device(find_local_profile(options.device), "policy", options):
        policy = _measured(options, questions)
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
    from perfsuite.experiments.shapes.policy import measure_policy
    from perfsuite.experiments.shapes.policy_record import ShapePolicy

    design, found = _design(options), []
    for question in questions:
        with ExitStack() as stack:
            meters = _opened(stack, options, {choice.subject for choice in question.choices})
            told = stack.enter_context(progress("policy", options))
            counts = f"{format_count(len(question.choices), 'choice')} at {format_count(len(question.sizes), 'size')}"
            told.step(f"{question.decides.value}, {counts}, each compared with NumPy first")
            rounds = partial(told.step, f"{question.decides.value}, rounds")
            found.append(measure_policy(question, meters, design=design, seed=options.seed, progress=rounds))
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
    from perfsuite.experiments.shapes.command_policy_tables import checks_answer
    from perfsuite.experiments.shapes.policy_check import Holding, check_table, refuse_other_device
    from perfsuite.experiments.shapes.policy_file import read_policy
    from perfsuite.experiments.shapes.policy_question import question_of

    check_counts(options, "processes", "rounds")
    policy, design = read_policy(options.path), _design(options)
    _check_bytes(question_of(each) for each in policy.tables)
    where = argparse.Namespace(**{**vars(options), "device": policy.device, "threads": policy.n_threads})
    with ExitStack() as stack:
        stack.enter_context(taken_device(find_local_profile(policy.device), "policy", options))
        meters = _opened(stack, where, {each.subject for each in policy.subjects})
        refuse_other_device(policy, meters)
        told = stack.enter_context(progress("policy", options))
        checked = [
            (each, check_table(each, meters, design=design, seed=options.seed, progress=rounds))
            for each in policy.tables
            for rounds in [partial(told.step, f"{each.title}, rounds")]
        ]
    give(checks_answer(checked), options)
    return int(any(each.holding is Holding.FAILS for _, checks in checked for each in checks))


def _opened(stack: ExitStack, options: argparse.Namespace, subjects: set[str]) -> SubjectMeters:
    wanted = [subject for subject in Subject if subject.value in subjects]
    return {subject: stack.enter_context(opened_meters(options, subject)) for subject in wanted}


def _design(options: argparse.Namespace) -> RoundDesign:
    from perfsuite.experiments.shapes.policy_rounds import RoundDesign

    try:
        return RoundDesign(n_processes=options.processes, n_rounds=options.rounds)
    except PolicyError as error:
        raise PolicyError(f"--processes={options.processes} --rounds={options.rounds}: {error}") from None
