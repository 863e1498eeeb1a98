"""``perfsuite roofline``: a device's ceilings, and where phases and operators stand under them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, give, tell_picture
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.device.threads import default_threads, usable_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.ceiling import CPU
from perfsuite.expectation.roofline.sweep_subject import SweepSubject
from perfsuite.expectation.roofline.sweeps import base_point, sweep_points
from perfsuite.experiments.roofline.checks import all_checks
from perfsuite.experiments.roofline.command_options import add_options, check_options, sweep_names
from perfsuite.experiments.roofline.command_published import published_answer
from perfsuite.experiments.roofline.llama_bench_rows import placed, read_bench
from perfsuite.measure.ceiling_survey import thread_counts
from perfsuite.measure.launch import environment_engine

if TYPE_CHECKING:
    from perfsuite.device.profile import Profile
    from perfsuite.expectation.roofline.point import Point
    from perfsuite.expectation.roofline.roofline_run import RooflineRun
    from perfsuite.experiments.roofline.recording import RooflineRequest
    from perfsuite.records.llama_bench import BenchRun

_STORE = Path(".perfsuite") / "rooflines"


_ABOUT = """
A device's ceilings are measured (peak of arithmetic, bandwidth of each level of memory, cost of a launch), and the
phases and operators of a workload are placed under them; with --sweep, series of workloads. Each finding of lm-Meter
that a sweep can show is checked on it.

What was measured is kept, so that it can be shown, drawn or compared again with --from and --again. Let nothing else
run while it measures.
"""

_EXAMPLES = {
    "perfsuite roofline --plot=roofline.png": "ceilings, phases and operators, drawn",
    "perfsuite roofline --sweep=depth,precision": "two series of workloads",
    "perfsuite roofline --from=kept.json --json": "a kept run again, for a program",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "roofline",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the run, into .perfsuite/rooflines or to --output, and the pictures of --plot",
        exits={1: "a check does not hold"},
        see=("docs/roofline.md",),
    )
    add_options(parser)
    parser.set_defaults(run=_roofline)


def _roofline(options: argparse.Namespace) -> int:
    if options.published:
        give(published_answer(), options)
        return 0
    check_options(options)
    from perfsuite.experiments.roofline.stored_run import read_roofline

    earlier = None if options.again is None else read_roofline(options.again)
    stored = None if options.source is None else read_roofline(options.source)
    benched = _read_bench(options, stored)
    run = stored or _measured(options)
    points = placed(benched, run.survey, options.llama_bench_model)
    _tell(run, points, earlier, options)
    return int(any(check.holds is False for check in all_checks(run)))


def _read_bench(options: argparse.Namespace, stored: RooflineRun | None) -> tuple[BenchRun, ...]:
    """Read llama-bench's file for the numbers of threads that the run has ceilings of, or will have."""
    if options.llama_bench is None:
        return ()
    if stored is not None:
        counts = {n_threads for processor, n_threads in stored.survey.processors() if processor == CPU and n_threads}
    else:
        counts = {options.threads or default_threads(), *thread_counts(usable_threads())}
    return read_bench(options.llama_bench, counts, options.llama_bench_model)


def _measured(options: argparse.Namespace) -> RooflineRun:
    """Measure, and keep what was measured before anything is made of it."""
    from perfsuite.experiments.roofline.recording import record_roofline
    from perfsuite.experiments.roofline.stored_run import write_roofline

    profile = find_local_profile(options.device)
    path = options.output or _STORE / f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{os.getpid()}.json"
    _check_output(path)
    with taken_device(profile, "roofline", options), progress("roofline", options) as told:
        run = record_roofline(_request(options, profile), told.step)
        write_roofline(run, path)
        told.remark(f"kept in {path}")
    return run


def _check_output(path: Path) -> None:
    """Refuse a file that could not be written when everything is measured."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be written ({error.strerror})") from None
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise PerfsuiteError(f"{path}: cannot be written; name a file in a folder that is yours")


def _request(options: argparse.Namespace, profile: Profile) -> RooflineRequest:
    from perfsuite.experiments.roofline.recording import RooflineRequest
    from perfsuite.experiments.scenario_bench import Bench
    from perfsuite.measure.device_survey import SurveyRequest

    cache_dir, n_threads = user_cache(), options.threads or default_threads()
    names, counts = sweep_names(options.sweep or ()), thread_counts(usable_threads())
    subject = SweepSubject(
        weights=options.model,
        n_threads=n_threads,
        thread_counts=counts,
        is_long=options.long,
        cache_dir=cache_dir / "models",
    )
    return RooflineRequest(
        survey=SurveyRequest(
            profile=profile,
            n_threads=n_threads,
            thread_counts=counts,
            cache_dir=cache_dir,
            log_dir=_STORE,
            opencl_platform=options.opencl_platform,
        ),
        base=() if names else (base_point(subject, options.scenario or "siso"),),
        sweeps=sweep_points(names, subject),
        with_bounds=options.bounds,
        bench=Bench(engine=environment_engine(), profile=profile, cache_dir=cache_dir, n_processes=options.replicates),
    )


def _tell(run: RooflineRun, benched: Sequence[Point], earlier: RooflineRun | None, options: argparse.Namespace) -> None:
    from perfsuite.experiments.roofline.answer import roofline_plain
    from perfsuite.experiments.roofline.command_tables import agreement_lines, roofline_parts
    from perfsuite.experiments.roofline.pictures import draw_roofline

    lines = () if earlier is None else agreement_lines(earlier, run)
    answer = Answer(
        parts=lambda: chain(roofline_parts(run, benched), lines),
        plain=lambda: roofline_plain(run, benched, earlier=earlier),
    )
    give(answer, options)
    if options.plot is not None:
        for path, title in draw_roofline(run, options.plot):
            tell_picture(options, path, title)
