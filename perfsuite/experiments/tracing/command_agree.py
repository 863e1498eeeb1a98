"""``perfsuite trace agree``: one run under two recorders at once, and whether they saw the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from perfsuite.cli.answer import give
from perfsuite.cli.command_help import word_parser
from perfsuite.cli.progress import remarks
from perfsuite.cli.run_options import add_answer, add_subject, check_least
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.device.work_folder import work_folder
from perfsuite.experiments.recorder_traces import traced_by_both
from perfsuite.experiments.tracing.command_agreement_tables import agreement_answer
from perfsuite.experiments.tracing.command_run import ebpf_of, own_plan
from perfsuite.experiments.tracing.recorder_agreement import RecorderAgreement, recorder_agreement


def run(arguments: Sequence[str]) -> int:
    """Compare the eBPF recorder with the callback recorder; the exit code is 1 where they saw different operators."""
    options = _parser().parse_args(arguments)
    check_least(options, "threads")
    with taken_device(find_local_profile(options.device), "trace", options):
        found = _agreement(options)
    give(agreement_answer(found), options)
    return 0 if found.is_same else 1


def _agreement(options: argparse.Namespace) -> RecorderAgreement:
    plan = own_plan(options)
    ebpf = ebpf_of(options, plan)
    remarks("trace", options).step(f"{Path(plan.gguf_path).stem}, {options.scenario}, both recorders")
    with work_folder() as folder:
        callback, outside = traced_by_both(plan, "callback", ebpf, folder)
    return recorder_agreement(outside.trace, callback.trace)


def _parser() -> argparse.ArgumentParser:
    parser = word_parser(
        "perfsuite trace agree",
        summary="compare the eBPF recorder with the callback recorder",
        about="A model is run once under each, and operators, their order, their number and their times are compared.",
        examples={"perfsuite trace agree": "the default model", "perfsuite trace agree --scenario=lilo --json": "long"},
        exits={1: "the recorders saw different operators"},
    )
    add_subject(parser, "device", "model", "scenario", "threads")
    recorder = parser.add_argument_group("the eBPF recorder")
    text = "by commas (default operator,ends)"
    recorder.add_argument("--trace", default="operator,ends", metavar="LEVELS", help=text)
    recorder.add_argument("--buffer", choices=("ring", "perf"), default="ring", help="of events (default ring)")
    add_answer(parser)
    parser.set_defaults(trace_floor=None, counters=None)
    return parser
