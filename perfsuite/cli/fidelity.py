"""``perfsuite fidelity``: how far the suite's own timings can be trusted, against ground truths of their own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from perfsuite.cli.command_help import add_command
from perfsuite.cli.fidelity_published import run_published
from perfsuite.cli.fidelity_tables import show_fidelity
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import (
    add_answer,
    add_backend,
    add_device,
    add_model,
    add_scenario,
    add_threads,
    effort_group,
    subject_group,
)
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import Profile, find_local_profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import llama_workload
from perfsuite.measure.launch import environment_engine, environment_opencl_vendors, run_worker
from perfsuite.measure.plan import DevicesPlan
from perfsuite.verdict.fidelity import FidelityKind, FidelityRun
from perfsuite.verdict.fidelity_limits import statements
from perfsuite.verdict.fidelity_recording import record_fidelity
from perfsuite.verdict.fidelity_request import KERNEL_BUDGET_NS, N_PROCESSES, N_ROUNDS, FidelityRequest
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands
    from perfsuite.measure.opencl_backend import OpenClBackend

_LOGS = Path(".perfsuite") / "fidelity"
_NS_PER_S = 1_000_000_000
_MOST_BUDGET_S = 86_400


_ABOUT = """
The suite's own timings are held against ground truths that do not depend on them: phases against an independent tracer,
sums of operators against phases, and OpenCL kernels against kernel duplication (a kernel that is launched N times takes
N times as long).

It takes about three minutes; let nothing else run. With --published nothing is measured: what the paper of lm-Meter
prints is computed again from its latencies.
"""

_EXAMPLES = {
    "perfsuite fidelity": "phases, operators and kernels of this machine",
    "perfsuite fidelity --phases-only --processes=10 --json": "one part, with more processes",
    "perfsuite fidelity --published": "the published figures",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "fidelity",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="logs of what it starts, into .perfsuite/fidelity",
        exits={1: "a limit is not met, or a part could not be measured"},
        see=("docs/fidelity.md",),
    )
    subject = subject_group(parser)
    add_device(subject)
    add_model(subject)
    add_scenario(subject, default="siso")
    add_threads(subject)
    add_backend(subject)
    _add_parts(parser.add_argument_group("which parts"))
    _add_effort(effort_group(parser))
    answer = add_answer(parser)
    answer.add_argument("--published", action="store_true", help="compute what lm-Meter published again instead")
    parser.set_defaults(run=_fidelity)


def _add_parts(group: argparse._ArgumentGroup) -> None:
    only = group.add_mutually_exclusive_group()
    only.add_argument("--phases-only", action="store_true", help="leave out operators and kernels")
    only.add_argument("--operators-only", action="store_true", help="leave out phases and kernels")
    only.add_argument("--kernels-only", action="store_true", help="leave out phases and operators")
    group.add_argument("--kernel", action="append", metavar="TEXT", help="own kernels whose case id holds this text")
    group.add_argument("--no-uprobes", action="store_true", help="leave out the kernel's own probes")


def _add_effort(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--processes",
        type=int,
        default=N_PROCESSES,
        metavar="N",
        help=f"fresh ones of each tracer (default {N_PROCESSES})",
    )
    group.add_argument("--rounds", type=int, default=N_ROUNDS, metavar="N", help=f"of duplication (default {N_ROUNDS})")
    group.add_argument(
        "--kernel-budget",
        type=float,
        default=KERNEL_BUDGET_NS / _NS_PER_S,
        metavar="S",
        help=f"time for the rounds of one kernel, s (default {KERNEL_BUDGET_NS / _NS_PER_S:g})",
    )


def _fidelity(options: argparse.Namespace) -> int:
    if options.published:
        return run_published(options)
    profile = find_local_profile(options.device)
    _check(options)
    with taken_device(profile, "fidelity", options), progress("fidelity", options) as told:
        run = record_fidelity(_request(options, profile), told.step)
    _tell(run, as_json=options.json)
    return int(bool(run.problems) or any(each.holds is not True for each in statements(run.rows)))


def _tell(run: FidelityRun, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(run.to_plain(), indent=1))
    else:
        show_fidelity(run)


def _request(options: argparse.Namespace, profile: Profile) -> FidelityRequest:
    cache_dir, engine = Path(platformdirs.user_cache_dir("perfsuite")), environment_engine()
    platform = options.opencl_platform or profile.opencl_platform
    weights = resolve(options.model, cache_dir=cache_dir / "models")
    scenario, case_ids = find_scenario(options.scenario), _case_ids(options.kernel or ())
    opencl: OpenClBackend | None = None
    if options.backend == "opencl":
        from perfsuite.measure.opencl_setup import set_up_opencl  # starts a process, and needs what few installs have

        opencl = set_up_opencl(engine, platform, cache_dir)
    elif options.opencl_platform is not None:
        _check_platform(platform, cache_dir)
    return FidelityRequest(
        profile=profile,
        engine=engine,
        workload=llama_workload(weights, scenario, flash_attn=opencl is None or not opencl.device.is_cpu),
        cache_dir=cache_dir,
        log_dir=_LOGS,
        n_threads=options.threads or default_threads(),
        opencl_platform=platform,
        opencl=opencl,
        kinds=_kinds(options),
        with_uprobes=not options.no_uprobes,
        case_ids=case_ids,
        n_processes=options.processes,
        n_rounds=options.rounds,
        kernel_budget_ns=round(options.kernel_budget * _NS_PER_S),
    )


def _check(options: argparse.Namespace) -> None:
    """Refuse numbers that measure nothing, and options that nothing would be done with."""
    for name in ("threads", "processes", "rounds"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise PerfsuiteError(f"--{name}={value}: expected 1 or more")
    if not 0 < options.kernel_budget <= _MOST_BUDGET_S:
        raise PerfsuiteError(
            f"--kernel-budget={options.kernel_budget:g}: expected seconds above 0, {_MOST_BUDGET_S} at most"
        )
    _case_ids(options.kernel or ())
    if FidelityKind.KERNELS in _kinds(options):
        return
    if options.kernel:
        raise PerfsuiteError(f"--kernel={options.kernel[0]}: no kernels are measured; expected --kernels-only, or none")
    if options.opencl_platform is not None and options.backend != "opencl":
        raise PerfsuiteError(
            f"--opencl-platform={options.opencl_platform}: nothing runs on OpenCL; expected kernels or --backend opencl"
        )


def _check_platform(platform: str | None, cache_dir: Path) -> None:
    """Refuse a platform that is not there before phases are measured; a process of its own looks for it."""
    from perfsuite.measure.kernel_runtime import opencl_environment

    settings = opencl_environment(cache_dir, inherited=environment_opencl_vendors())
    run_worker(DevicesPlan(platform=platform), extra_environment=settings)


def _kinds(options: argparse.Namespace) -> frozenset[FidelityKind]:
    chosen = {kind for kind in FidelityKind if getattr(options, f"{kind.value}_only")}
    return frozenset(chosen or FidelityKind)


def _case_ids(texts: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    known = tuple(case.case_id for case in STANDARD_KERNELS)
    for text in texts:
        if not any(text in case_id for case_id in known):
            raise PerfsuiteError(f"--kernel={text}: no kernel's case id holds this; `{known[0]}` is one")
    return tuple(case_id for case_id in known if not texts or any(text in case_id for text in texts))
