"""``perfsuite trace agree``, ``check`` and ``install-helper``: whether the eBPF recorder works, and tells the truth."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, figure, give, percent
from perfsuite.cli.command_help import Parser, add_command, add_json
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import remarks
from perfsuite.cli.run_options import add_answer, add_subject, check_least
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.device.work_folder import work_folder
from perfsuite.experiments.recorder_traces import traced_by_both
from perfsuite.experiments.tracing.agreement import RecorderAgreement, TimesAgreement, recorder_agreement
from perfsuite.experiments.tracing.command_run import ebpf_plan, own_plan
from perfsuite.measure.counters import known_counters, usual_counters
from perfsuite.measure.ebpf_helper import ebpf_obstacle, find_helper, install_helper
from perfsuite.units import format_count, format_ns

#: Raised whenever a key of the JSON of ``agree`` changes its meaning.
SCHEMA = 1


def agree_parser() -> Parser:
    """Return the parser of ``trace agree``."""
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
    parser.set_defaults(trace_floor=None, counters=None, run=_agree)
    return parser


def _agree(options: argparse.Namespace) -> int:
    check_least(options, "threads")
    with taken_device(find_profile(options.device), "trace", options) as taken:
        plan = own_plan(options, taken.board)
        ebpf = ebpf_plan(options, taken.board.instruments.ebpf_helper())
        remarks("trace", options).step(f"{Path(plan.gguf_path).stem}, {options.scenario}, both recorders")
        with work_folder() as folder:
            callback, outside = traced_by_both(plan, "callback", ebpf, taken.board, folder)
        found = recorder_agreement(outside.trace, callback.trace)
    give(Answer(parts=lambda: _agreement_parts(found), plain=lambda: _agreement_plain(found)), options)
    return 0 if found.is_same else 1


def _agreement_parts(found: RecorderAgreement) -> Iterator[Part]:
    same = "the same operators in the same order" if found.is_same else "not the same operators"
    evaluations = format_count(found.n_evaluations, "evaluation")
    yield f"{evaluations} seen by both recorders: {same}; {found.n_ebpf} by eBPF, {found.n_callback} by the callback"
    if found.n_callback_only or found.n_ebpf_only:
        yield f"seen by one alone: {found.n_callback_only} by the callback, {found.n_ebpf_only} by eBPF"
    if found.first_difference:
        yield f"{format_count(found.n_different, 'evaluation')} differ, first: {found.first_difference}"
    times = [
        (
            *(each.name or "all", each.n_operators, *map(format_ns, (each.ebpf_ns, each.callback_ns))),
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


def _agreement_plain(found: RecorderAgreement) -> dict[str, Any]:
    times = {name: [_times_plain(each) for each in getattr(found, name)] for name in ("phases", "ops")}
    threads = [{**asdict(each), "accounted_ratio": each.accounted_ratio} for each in found.threads]
    totals = {"total": _times_plain(found.total), **times, "threads": threads}
    return {"schema": SCHEMA, "is_same": found.is_same, **asdict(found), **totals}


def _times_plain(each: TimesAgreement) -> dict[str, Any]:
    return {**asdict(each), "name": each.name or "all", "ratio": each.ratio}


def check_parser() -> Parser:
    """Return the parser of ``trace check``."""
    parser = add_command(
        None,
        "perfsuite trace check",
        summary="say whether eBPF works here, or what is missing",
        about="Also lists the hardware counters.",
        examples={"perfsuite trace check": "on this machine"},
        exits={1: "something is missing"},
        see=("docs/tracing.md",),
    )
    add_json(parser)
    parser.set_defaults(run=_check)
    return parser


def _check(options: argparse.Namespace) -> int:
    obstacle = ebpf_obstacle(user_cache())
    helper = None if obstacle else str(find_helper(user_cache()))
    counters = {
        each.name: {"meaning": each.meaning, "is_usual": each.name in usual_counters()} for each in known_counters()
    }
    plain = {"problem": obstacle, "helper": helper, "counters": counters}
    give(Answer(parts=lambda: _check_parts(obstacle, helper), plain=lambda: plain), options)
    return 1 if obstacle else 0


def _check_parts(obstacle: str | None, helper: str | None) -> Iterator[str]:
    if obstacle:
        yield f"eBPF cannot be used: {obstacle}"
        return
    yield f"eBPF can be used, by {helper}"
    yield "counters, where the machine has them:"
    for counter in known_counters():
        is_usual = "  (unless others are asked for)" if counter.name in usual_counters() else ""
        yield f"  {counter.name:24s} {counter.meaning}{is_usual}"


def install_helper_parser() -> Parser:
    """Return the parser of ``sudo perfsuite trace install-helper``."""
    parser = add_command(
        None,
        "perfsuite trace install-helper",
        summary="install the one program that needs privileges",
        about="It has CAP_BPF and CAP_PERFMON: any user may then trace their own processes, and nobody else's.",
        examples={"sudo perfsuite trace install-helper": "once"},
        writes="/usr/local/libexec/perfsuite/",
        see=("docs/tracing.md",),
    )
    add_json(parser)
    parser.set_defaults(run=_install_helper)
    return parser


def _install_helper(options: argparse.Namespace) -> int:
    installed = install_helper()
    notes = [f"note: {note}" for note in installed.notes]
    lines = [*notes, f"installed {installed.path}, with CAP_BPF and CAP_PERFMON"]
    plain = {"file": str(installed.path), "notes": list(installed.notes)}
    give(Answer(parts=lambda: lines, plain=lambda: plain), options)
    return 0
