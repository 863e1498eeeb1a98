"""``perfsuite trace agree``: one run under two recorders at once, and whether they saw the same."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, figure, give, percent
from perfsuite.cli.command_help import add_command
from perfsuite.cli.progress import remarks
from perfsuite.cli.run_options import add_answer, add_subject, check_least
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.device.work_folder import work_folder
from perfsuite.experiments.recorder_traces import traced_by_both
from perfsuite.experiments.tracing.command_run import ebpf_of, own_plan
from perfsuite.experiments.tracing.recorder_agreement import RecorderAgreement, TimesAgreement, recorder_agreement
from perfsuite.units import format_count, format_ns

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def agreement_answer(found: RecorderAgreement) -> Answer:
    """Return whether they saw the same operators, and how far their times lie apart, in all and by thread."""
    return Answer(parts=lambda: _parts(found), plain=lambda: _plain(found))


def _parts(found: RecorderAgreement) -> Iterator[Part]:
    same = "the same operators in the same order" if found.is_same else "not the same operators"
    evaluations = format_count(found.n_evaluations, "evaluation")
    yield f"{evaluations} seen by both recorders: {same}; {found.n_ebpf} by eBPF, {found.n_callback} by the callback"
    if found.n_callback_only or found.n_ebpf_only:
        yield f"seen by one alone: {found.n_callback_only} by the callback, {found.n_ebpf_only} by eBPF"
    if found.first_difference:
        yield f"{format_count(found.n_different, 'evaluation')} differ, first: {found.first_difference}"
    times = [
        (
            each.name or "all",
            each.n_operators,
            *map(format_ns, (each.ebpf_ns, each.callback_ns)),
            figure("{:.4f}", each.ratio),
        )
        for each in (*found.phases, *found.ops, found.total)
    ]
    yield Sheet(("operators", "n", "eBPF", "callback", "eBPF/callback"), times)
    threads = [
        (each.thread, *map(format_ns, (each.own_ns, each.wait_ns, each.graph_ns)), percent(each.accounted_ratio, 2))
        for each in found.threads
    ]
    yield Sheet(("thread", "in operators", "waiting", "of the graphs", "accounted"), threads)


def _plain(found: RecorderAgreement) -> dict[str, Any]:
    times = {name: [_plain_times(each) for each in getattr(found, name)] for name in ("phases", "ops")}
    threads = [{**asdict(each), "accounted_ratio": each.accounted_ratio} for each in found.threads]
    totals = {"total": _plain_times(found.total), **times, "threads": threads}
    return {"schema": SCHEMA, "is_same": found.is_same, **asdict(found), **totals}


def _plain_times(each: TimesAgreement) -> dict[str, Any]:
    return {**asdict(each), "name": each.name or "all", "ratio": each.ratio}


def run(arguments: Sequence[str]) -> int:
    """Compare the eBPF recorder with the callback recorder; the exit code is 1 where they saw different operators."""
    options = _parser().parse_args(arguments)
    check_least(options, "threads")
    with taken_device(find_profile(options.device), "trace", options) as taken:
        board = taken.board
        plan = own_plan(options, board)
        ebpf = ebpf_of(options, board)
        remarks("trace", options).step(f"{Path(plan.gguf_path).stem}, {options.scenario}, both recorders")
        with work_folder() as folder:
            callback, outside = traced_by_both(plan, "callback", ebpf, board, folder)
        found = recorder_agreement(outside.trace, callback.trace)
    give(agreement_answer(found), options)
    return 0 if found.is_same else 1


def _parser() -> argparse.ArgumentParser:
    parser = add_command(
        None,
        "perfsuite trace agree",
        summary="compare the eBPF recorder with the callback recorder",
        about="Runs a model under each, and compares operators, order and times.",
        examples={"perfsuite trace agree --scenario=lilo": "a long prompt and output"},
        exits={1: "the recorders saw different operators"},
        see=("docs/tracing.md",),
    )
    add_subject(parser, "device", "model", "scenario", "threads")
    recorder = parser.add_argument_group("the eBPF recorder")
    text = "levels of eBPF, by commas (default operator,ends)"
    recorder.add_argument("--trace", default="operator,ends", metavar="LEVELS", help=text)
    recorder.add_argument("--buffer", choices=("ring", "perf"), default="ring", help="buffer of eBPF (default ring)")
    add_answer(parser)
    parser.set_defaults(trace_floor=None, counters=None)
    return parser
