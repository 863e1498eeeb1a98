"""``perfsuite roofline``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.cli.answer import Answer, check_picture, give, tell_picture
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_shared, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.machine import default_threads, usable_threads
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.roofline.ceiling import Survey
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.row_works import bench_point, bench_weights
from perfsuite.expectation.roofline.sweeps import SWEEPS, SweepSubject, base_point, sweep_points
from perfsuite.experiments.roofline.checks import all_checks
from perfsuite.experiments.roofline.command_published import published_answer
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.probes import thread_counts
from perfsuite.records.llama_bench import BenchRun, read_llama_bench

if TYPE_CHECKING:
    from perfsuite.device.profile import Profile
    from perfsuite.expectation.roofline.roofline_run import RooflineRun
    from perfsuite.experiments.roofline.experiment import RooflineRequest


def placed(runs: Iterable[BenchRun], survey: Survey, name_or_path: str | None) -> tuple[Point, ...]:
    """Place each test under the processor's ceilings with its number of threads."""
    given: Any = {"cache_dir": user_cache() / "models", "name_or_path": name_or_path}
    return tuple(bench_point(run, survey.of(run.n_threads), **given) for run in runs)


#: What says how to measure, and so nothing to a run that is stored.
_MEASURING = ("sweep", "long", "threads", "opencl_platform", "bounds", "output")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add every option."""
    subject = add_subject(parser, "device", "model")
    subject.add_argument("--scenario", metavar="NAME", help="scenario, if nothing is swept (default siso)")
    known = ", ".join((*SWEEPS, "all"))
    subject.add_argument("--sweep", action="append", metavar="NAME,..", help=f"sweeps, by commas: {known}")
    subject.add_argument("--long", action="store_true", help="sweep realistic lengths and sizes, which takes hours")
    add_shared(subject, "threads", "opencl-platform")
    effort = effort_group(parser)
    effort.add_argument("--replicates", type=int, default=5, metavar="N", help="processes for each point (default 5)")
    effort.add_argument("--bounds", action="store_true", help="compare the ceilings with other programs")
    group = parser.add_argument_group("stored results")
    group.add_argument("--from", dest="source", type=Path, metavar="FILE", help="show a stored run, measure nothing")
    group.add_argument("--again", type=Path, metavar="FILE", help="check whether an earlier run agrees")
    group.add_argument("--llama-bench", type=Path, metavar="FILE", help="also place the results of llama-bench -o json")
    text = "what llama-bench ran, if its file does not say"
    group.add_argument("--llama-bench-model", metavar="PATH|NAME", help=text)
    group.add_argument("--published", action="store_true", help="show the published devices instead")
    answer = add_answer(parser)
    answer.add_argument("--output", type=Path, metavar="FILE", help="file of the run")
    answer.add_argument("--plot", type=Path, metavar="FILE", help="draw .svg files whose names begin so")


def check_options(options: argparse.Namespace) -> None:
    """Refuse what would end minutes of measuring in an error."""
    check_least(options, "threads", "replicates")
    check_picture(options.plot)
    for name, path in (("llama-bench", options.llama_bench), ("again", options.again)):
        if path is not None and not path.is_file():
            raise PerfsuiteError(f"--{name}={path}: no such file")
    for name in _MEASURING if options.source is not None else ():
        if getattr(options, name):
            raise PerfsuiteError(f"--{name.replace('_', '-')}: says nothing beside --from; leave one of them out")
    sweep_names(options.sweep or ())
    if options.sweep and options.scenario is not None:
        raise PerfsuiteError(f"--scenario={options.scenario}: sweeps have scenarios of their own; leave it out")


def sweep_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each named sweep once, or all of them; `PerfsuiteError` where one is unknown."""
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        if name not in (*SWEEPS, "all"):
            told = f"accepted are {', '.join(SWEEPS)}, all{meant(name, (*SWEEPS, 'all'))}"
            raise PerfsuiteError(f"--sweep={name}: unknown; {told}")
    return tuple(SWEEPS) if "all" in names else tuple(dict.fromkeys(names))


_STORE = Path(".perfsuite") / "rooflines"


_ABOUT = """
Ceilings are peaks of arithmetic, bandwidth of each memory level, and launch cost. With --sweep, lm-Meter's findings are
checked as well. Let nothing else run.
"""

_EXAMPLES = {
    "perfsuite roofline --plot=roofline.svg": "phases and operators",
    "perfsuite roofline --sweep=depth,precision": "two series",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "roofline",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the run, into .perfsuite/rooflines or --output, and the pictures of --plot",
        exits={1: "a check fails"},
        see=("docs/roofline.md",),
    )
    add_options(parser)
    parser.set_defaults(run=_roofline)


def _roofline(options: argparse.Namespace) -> int:
    if options.published:
        give(published_answer(), options)
        return 0
    check_options(options)
    from perfsuite.expectation.roofline.roofline_run import read_roofline

    earlier = None if options.again is None else read_roofline(options.again)
    stored = None if options.source is None else read_roofline(options.source)
    benched = _read_bench(options, stored)
    run = stored or _measured(options)
    points = placed(benched, run.survey, options.llama_bench_model)
    _tell(run, points, earlier, options)
    return int(any(check.holds is False for check in all_checks(run)))


def _read_bench(options: argparse.Namespace, stored: RooflineRun | None) -> tuple[BenchRun, ...]:
    """Read what llama-bench wrote, and refuse what could not be placed: weights or threads that are not known."""
    if options.llama_bench is None:
        return ()
    if stored is not None:
        counts = set(stored.survey.thread_counts)
    else:
        counts = {options.threads or default_threads(), *thread_counts(usable_threads())}
    runs = read_llama_bench(options.llama_bench)
    for run in runs:
        if run.n_threads not in counts:
            accepted = ", ".join(map(str, sorted(counts)))
            raise PerfsuiteError(
                f"--llama-bench={options.llama_bench}: {run.test} ran on {run.n_threads} threads, ceilings are of "
                f"{accepted}; run llama-bench with -t of one of these"
            )
        bench_weights(run, cache_dir=user_cache() / "models", name_or_path=options.llama_bench_model)
    return runs


def _measured(options: argparse.Namespace) -> RooflineRun:
    from perfsuite.expectation.roofline.roofline_run import write_roofline
    from perfsuite.experiments.roofline.experiment import record_roofline

    profile = find_profile(options.device)
    path = options.output or _STORE / f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{os.getpid()}.json"
    with taken_device(profile, "roofline", options) as taken, progress("roofline", options) as told:
        run = record_roofline(_request(options, profile, taken.board), told.step)
        write_roofline(run, path)
        told.remark(f"kept in {path}")
    return run


def _request(options: argparse.Namespace, profile: Profile, board: Board) -> RooflineRequest:
    from perfsuite.experiments.roofline.experiment import RooflineRequest
    from perfsuite.measure.device_survey import SurveyRequest

    facts = board.facts()
    n_threads = options.threads or facts.default_threads
    names, counts = sweep_names(options.sweep or ()), thread_counts(facts.usable_threads)
    subject = SweepSubject(
        weights=options.model,
        n_threads=n_threads,
        thread_counts=counts,
        is_long=options.long,
        cache_dir=user_cache() / "models",
    )
    return RooflineRequest(
        survey=SurveyRequest(
            profile=profile,
            n_threads=n_threads,
            board=board,
            log_dir=_STORE,
            opencl_platform=options.opencl_platform,
        ),
        base=() if names else (base_point(subject, options.scenario or "siso"),),
        sweeps=sweep_points(names, subject),
        with_bounds=options.bounds,
        engine=facts.engine,
        n_processes=options.replicates,
    )


def _tell(run: RooflineRun, benched: Sequence[Point], earlier: RooflineRun | None, options: argparse.Namespace) -> None:
    from perfsuite.experiments.roofline import command_tables as tables

    lines = () if earlier is None else tables.agreement_lines(earlier, run)
    answer = Answer(
        parts=lambda: chain(tables.roofline_parts(run, benched), lines),
        plain=lambda: tables.roofline_plain(run, benched, earlier=earlier),
    )
    give(answer, options)
    if options.plot is not None:
        for path, title in tables.draw_roofline(run, options.plot):
            tell_picture(options, path, title)
