"""``perfsuite fidelity``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfsuite.cli.answer import Answer, Part, Sheet, figure, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.opencl_run import named_weights, opencl_backend_of
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import Profile, find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.experiments.fidelity.command_published import run_published
from perfsuite.experiments.fidelity.experiment import (
    KERNEL_BUDGET_NS,
    N_PROCESSES,
    N_ROUNDS,
    FidelityRequest,
    record_fidelity,
)
from perfsuite.experiments.fidelity.scored_run import (
    LEAST_KERNEL_NS,
    SHORT_PHASE_NS,
    SHORTEST_KERNEL_NS,
    FidelityKind,
    FidelityRow,
    FidelityRun,
    mean_and_worst,
    measured_kernels,
    statements,
)
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import DevicesPlan
from perfsuite.units import NS_PER_S, format_ns, format_signed_ns
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS
from perfsuite.workload.model_shape import check_generates
from perfsuite.workload.scenario import find_scenario


def fidelity_parts(run: FidelityRun) -> Iterator[Part]:
    """Yield a sheet for each kind, the mean and the worst of the kernels, the conditions, and what falls short."""
    for kind, title in ((FidelityKind.PHASES, "Phases"), (FidelityKind.OPERATORS, "Operators, summed up")):
        if rows := run.of(kind):
            yield _phase_sheet(title, rows)
    yield from _kernel_parts(run)
    told = {"device": run.device, **({"OpenCL": run.platform} if run.platform else {}), **run.conditions}
    yield "; ".join(f"{name} {value}" for name, value in told.items())
    yield from (f"not measured: {problem}" for problem in run.problems)
    if found := statements(run.rows):
        yield f"limits: {sum(bool(each.holds) for each in found)} of {len(found)} hold"
    for each in found:
        if not each.holds:
            word = "undecided" if each.holds is None else "not so"
            yield f"  {each.name}: {word}: {each.claim}; {each.evidence}"


def _kernel_parts(run: FidelityRun) -> Iterator[Part]:
    least, shortest = format_ns(LEAST_KERNEL_NS), format_ns(SHORTEST_KERNEL_NS)
    for title, rows in (
        (f"Kernels of {least} and more", measured_kernels(run.rows, LEAST_KERNEL_NS)),
        (f"Kernels of {shortest} to {least}", measured_kernels(run.rows, SHORTEST_KERNEL_NS, LEAST_KERNEL_NS)),
    ):
        if rows:
            yield _kernel_sheet(title, rows)
            mean, worst_percent, worst = mean_and_worst(rows)
            yield f"mean {mean:.2f} %, worst {worst_percent:.2f} % ({worst.name}) of {len(rows)}"
            yield from (f"  {row.name}: {row.note}" for row in rows if row.note)
    kernels = run.of(FidelityKind.KERNELS)
    yield from (f"not measured: {row.name}: {row.problem}" for row in kernels if not row.is_measured)


def _phase_sheet(title: str, rows: Sequence[FidelityRow]) -> Sheet:
    cells = [
        (
            *(row.name, row.n, format_ns(row.measured_ns), format_ns(row.ground_truth_ns), row.ground_truth),
            figure("{:+.0f} ns", row.error_ns)
            if (row.ground_truth_ns or 0) < SHORT_PHASE_NS
            else format_signed_ns(row.error_ns),
            *_scores(row),
        )
        for row in rows
    ]
    headings = ("name", ">n", ">measured", ">ground truth", ">by", ">error", ">accuracy", ">µs/ms")
    return Sheet(headings, cells, title)


def _kernel_sheet(title: str, rows: Sequence[FidelityRow]) -> Sheet:
    cells = [
        (
            *(row.name.removeprefix("kernel/"), row.n, format_ns(row.measured_ns), format_ns(row.ground_truth_ns)),
            *map(format_ns, row.interval_ns or (None, None)),
            *(*_scores(row), format_ns(row.beside_ns.get("occupied_ns"))),
        )
        for row in rows
    ]
    headings = ("name", ">n", ">END-START", ">ground truth", ">from", ">to", ">accuracy", ">µs/ms", ">occupied")
    return Sheet(headings, cells, title)


def _scores(row: FidelityRow) -> tuple[str, str]:
    return figure("{:.2f} %", row.accuracy_percent), figure("{:.3f}", row.scaled_error_us_per_ms)


_MOST_BUDGET_S = 86_400


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "fidelity",
        about="""
        Phases against another tracer, sums of operators against phases, OpenCL kernels against kernel duplication.
        Takes three minutes; let nothing else run.
        """,
        examples={"perfsuite fidelity --phases-only --processes=10": "one part, with more processes"},
        writes="logs, into .perfsuite/fidelity",
        exits={1: "a limit is not met, or a part could not be measured"},
        see=("docs/fidelity.md",),
    )
    add_subject(parser, "device", "model", "scenario", "threads", "backend", "opencl-platform")
    parts = parser.add_argument_group("parts")
    only = parts.add_mutually_exclusive_group()
    for kind in FidelityKind:
        others = " and ".join(each.value for each in FidelityKind if each is not kind)
        only.add_argument(f"--{kind.value}-only", action="store_true", help=f"leave out {others}")
    parts.add_argument(
        "--kernel", action="append", metavar="TEXT", help="own kernels whose case id contains this; repeatable"
    )
    parts.add_argument("--no-uprobes", action="store_true", help="leave out uprobes")
    effort = effort_group(parser)
    text = f"processes of each tracer (default {N_PROCESSES})"
    effort.add_argument("--processes", type=int, default=N_PROCESSES, metavar="N", help=text)
    text, default_s = f"rounds of duplication (default {N_ROUNDS})", KERNEL_BUDGET_NS / NS_PER_S
    effort.add_argument("--rounds", type=int, default=N_ROUNDS, metavar="N", help=text)
    text = f"time for one kernel, s (default {default_s:g}, at most {_MOST_BUDGET_S})"
    effort.add_argument("--kernel-budget", type=float, default=default_s, metavar="S", help=text)
    answer = add_answer(parser)
    answer.add_argument("--published", action="store_true", help="compute lm-Meter's published figures instead")
    parser.set_defaults(run=_fidelity)


def _fidelity(options: argparse.Namespace) -> int:
    if options.published:
        return run_published(options)
    profile = find_profile(options.device)
    _check(options)
    with taken_device(profile, "fidelity", options) as taken, progress("fidelity", options) as told:
        run = record_fidelity(_request(options, profile, taken.board), told.step)
    give(Answer(parts=lambda: fidelity_parts(run), plain=run.to_plain), options)
    return int(bool(run.problems) or not all(each.holds for each in statements(run.rows)))


def _request(options: argparse.Namespace, profile: Profile, board: Board) -> FidelityRequest:
    weights, scenario, facts = named_weights(options), find_scenario(options.scenario), board.facts()
    platform, opencl = options.opencl_platform or profile.opencl_platform, opencl_backend_of(options, board)
    if opencl is None and options.opencl_platform is not None:  # one that is not there is refused before phases
        board.run(DevicesPlan(platform=platform), extra_environment=facts.opencl_environment)
    return FidelityRequest(
        profile=profile,
        board=board,
        workload=llama_workload(weights, scenario, flash_attn=opencl is None or not opencl.device.is_cpu),
        log_dir=Path(".perfsuite") / "fidelity",
        n_threads=options.threads or facts.default_threads,
        opencl_platform=platform,
        opencl=opencl,
        kinds=_kinds(options),
        with_uprobes=not options.no_uprobes,
        case_ids=_case_ids(options.kernel),
        n_processes=options.processes,
        n_rounds=options.rounds,
        kernel_budget_ns=round(options.kernel_budget * NS_PER_S),
    )


def _check(options: argparse.Namespace) -> None:
    check_least(options, "threads", "processes", "rounds")
    check_generates(named_weights(options).shape, f"--model={options.model}")
    if not 0 < (budget_s := options.kernel_budget) <= _MOST_BUDGET_S:
        raise PerfsuiteError(f"--kernel-budget={budget_s:g}: expected seconds above 0, {_MOST_BUDGET_S} at most")
    _case_ids(options.kernel)
    if FidelityKind.KERNELS in _kinds(options):
        return
    if options.kernel:
        raise PerfsuiteError(f"--kernel={options.kernel[0]}: no kernels are measured; expected --kernels-only, or none")
    if options.opencl_platform is not None and options.backend != "opencl":
        raise PerfsuiteError(
            f"--opencl-platform={options.opencl_platform}: nothing runs on OpenCL; expected kernels or --backend opencl"
        )


def _kinds(options: argparse.Namespace) -> frozenset[FidelityKind]:
    chosen = {kind for kind in FidelityKind if getattr(options, f"{kind.value}_only")}
    return frozenset(chosen or FidelityKind)


def _case_ids(texts: Sequence[str] | None) -> tuple[str, ...]:
    known = tuple(case.case_id for case in STANDARD_KERNELS)
    for text in texts or ():
        if not any(text in case_id for case_id in known):
            raise PerfsuiteError(f"--kernel={text}: no kernel's case id holds this; `{known[0]}` is one")
    return tuple(case_id for case_id in known if not texts or any(text in case_id for text in texts))
